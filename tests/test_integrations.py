"""The examples for other frameworks, where those are installed (`make test-integrations`)."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import samix

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "integrations"
PACKAGES = {"lightning_module.py": "lightning", "huggingface_trainer.py": "transformers"}


def test_value_every_integration_names_its_package():
    assert {path.name for path in FOLDER.glob("*.py")} == PACKAGES.keys()


@pytest.mark.parametrize("name", PACKAGES)
def test_value_integrations_are_short(name):
    assert len((FOLDER / name).read_text().splitlines()) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_value_integrations_run_and_learn(name, tmp_path):
    if importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed; run `make test-integrations`")
    source = Path(samix.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, str(FOLDER / name), "120"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.search(r"accuracy after 120 steps: ([\d.]+) % \(chance ([\d.]+) %\)", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > 2 * float(found[2])
