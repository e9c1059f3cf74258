"""Every example runs as it stands and fits on a screen."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import samix

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
LIMIT = 60


def test_value_there_are_examples():
    assert {path.name for path in EXAMPLES} >= {"samix_in_your_loop.py", "mixup_in_your_loop.py"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_value_examples_are_short(path):
    assert len(path.read_text().splitlines()) <= LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_value_examples_run_and_learn(path, tmp_path):
    source = Path(samix.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, str(path), "60"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.search(r"accuracy after 60 steps: ([\d.]+) % \(chance ([\d.]+) %\)", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > 1.5 * float(found[2])
    assert list(tmp_path.iterdir()) == []
