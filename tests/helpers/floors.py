"""The lowest versions that pyproject.toml allows, as a file of constraints for pip: `make test-floor`."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
LEFT_OUT = ("dev", "integrations")
"""Extras whose newest versions are tested: the tools, and what `make test-integrations` needs."""


def floors(project: Path = PROJECT) -> list[str]:
    """`name==version` for every requirement of the package and its extras, one that has a lowest version."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = table.get("optional-dependencies", {})
    wanted = [
        *table["dependencies"],
        *(line for name in extras if name not in LEFT_OUT for line in extras[name]),
    ]
    found = (re.fullmatch(r"([\w.-]+)(?:\[.*\])?[>=]=([\w.]+).*", line) for line in wanted)
    return sorted({f"{each[1]}=={each[2]}" for each in found if each})


if __name__ == "__main__":
    print(*floors(), sep="\n")
