"""Every example says how to run it, runs as it stands and fits on a screen."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
PRETRAINING = FOLDER / "pretrain_in_your_loop.py"
LIMIT = 60


def test_value_there_are_examples():
    names = {path.name for path in EXAMPLES}
    assert names >= {"samix_in_your_loop.py", "mixup_in_your_loop.py", "pretrain_in_your_loop.py"}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_value_examples_say_how_to_run_them(path):
    words = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert f"python {path.relative_to(FOLDER.parent).as_posix()} [steps]" in words


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_value_examples_are_short(path):
    assert len(path.read_text().splitlines()) <= LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_value_examples_run_and_learn(path, run_example):
    accuracy, chance = run_example(path, 60)
    assert accuracy > 1.5 * chance


@pytest.mark.slow
def test_value_pretraining_beats_the_untrained_encoder(run_example):
    untrained, _ = run_example(PRETRAINING, 0)
    trained, _ = run_example(PRETRAINING, 150)
    assert trained > untrained + 3
