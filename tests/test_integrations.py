"""The examples for other frameworks, where those are installed (`make test-integrations`)."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "integrations"
PACKAGES = {
    "lightning_module.py": "lightning",
    "lightning_samix.py": "lightning",
    "huggingface_trainer.py": "transformers",
}


def test_value_every_integration_names_its_package():
    assert {path.name for path in FOLDER.glob("*.py")} == PACKAGES.keys()


@pytest.mark.parametrize("name", PACKAGES)
def test_value_integrations_are_short(name):
    assert len((FOLDER / name).read_text().splitlines()) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_value_integrations_run_and_learn(name, run_example):
    if importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed; run `make test-integrations`")
    accuracy, chance = run_example(FOLDER / name, 120)
    assert accuracy > 2 * chance
