"""How fast recipes were rehearsed on this machine: `--dry-run` writes it, `samix recipes` reads it."""

import json
import math
import os
from pathlib import Path

from samix.core.words import printable
from samix.engine.rehearsal import Rehearsal
from samix.recipes.catalogue import Entry
from samix.runs.files import write_text


def pace_file() -> Path:
    """Where they are kept: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "samix" / "pace.json"


def read_pace() -> dict[str, float]:
    """Seconds per picture and epoch by recipe; a file that is none is as good as no file."""
    try:
        found = json.loads(pace_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: float(seconds)
        for name, seconds in found.items()
        if isinstance(seconds, int | float) and math.isfinite(seconds) and seconds > 0
    }


def remember_pace(name: str, rehearsal: Rehearsal) -> None:
    """Keeps what a rehearsal found; a cache that cannot be written is no reason to fail."""
    known = read_pace() | {name: rehearsal.seconds / rehearsal.batch}
    try:
        pace_file().parent.mkdir(parents=True, exist_ok=True)
        write_text(pace_file(), json.dumps(known, indent=1) + "\n")
    except OSError as error:
        print(f"(not remembered: {printable(str(error))})")


def estimated_hours(entry: Entry, pace: dict[str, float]) -> float | None:
    """Hours of the whole training on this machine; None where pace or number of pictures is not known."""
    pictures, _ = entry.size
    if entry.name not in pace or pictures is None:
        return None
    return pace[entry.name] * pictures * entry.recipe.epochs / 3600
