"""Every example runs as it stands and fits on a screen."""

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
LIMIT = 60


def test_value_there_are_examples():
    assert {path.name for path in EXAMPLES} >= {"samix_in_your_loop.py", "mixup_in_your_loop.py"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_value_examples_are_short(path):
    assert len(path.read_text().splitlines()) <= LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_value_examples_run_and_learn(path, run_example):
    accuracy, chance = run_example(path, 60)
    assert accuracy > 1.5 * chance
