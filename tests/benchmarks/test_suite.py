"""The suite collects the runs of its rows, and no others."""

import csv
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from samix.engine.machine import Machine
from samix.engine.recipe import to_dict
from samix.recipes import find_pretraining, find_recipe

SUITE = Path(__file__).resolve().parents[2] / "benchmarks" / "suite.py"
NUMBERS = {"top1": 50.0, "best": 52.0, "last": 49.0, "ece": 5.0, "epochs": 3, "commit": "abc", "seconds": 1.0}


@pytest.fixture
def collect(tmp_path, monkeypatch):
    """Collects rows of a family in a folder of its own; nothing is trained."""
    spec = importlib.util.spec_from_file_location("suite", SUITE)
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    monkeypatch.chdir(tmp_path)

    def run(family: str, *rows: str) -> int:
        words = ["suite.py", family, "--rows", *rows, "--seeds", "0", "1", "--collect"]
        monkeypatch.setattr("sys.argv", words)
        return suite.main()

    return run


def leave(recipe, folder: Path, seed: int) -> None:
    """What a finished run leaves behind, as far as the suite reads it."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(replace(recipe, seed=seed))))
    (folder / "summary.json").write_text(json.dumps(NUMBERS | {"recipe": "some/name", "seed": seed}))


@pytest.mark.parametrize(
    ("find", "family", "row"),
    [(find_recipe, "demo", "samix"), (find_pretraining, "ssl-demo", "moco-v2+samix-c")],
)
def test_value_runs_of_the_row_are_collected(find, family, row, collect, tmp_path):
    _, recipe = find(f"{family}/{row}")
    machine = Machine(threads=1)
    leave(replace(recipe, machine=machine), tmp_path / "runs" / family / row / "1", 1)
    assert collect(family, row) == 0
    with next((tmp_path / "results").iterdir()).open() as file:
        (line,) = csv.DictReader(file)
    assert (line["method"], line["seed"], line["commit"]) == (row, "1", "abc")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 3}, "epochs: there 3, here"),
        ({"seed": 5}, "seed: there 5, here 1"),
        ({"machine": Machine(precision="bf16-mixed")}, "machine.precision: there bf16-mixed, here 32-true"),
    ],
    ids=["setting", "seed", "machine"],
)
def test_error_a_run_of_other_settings(change, words, collect, tmp_path, capsys):
    _, recipe = find_recipe("demo/cutmix")
    leave(recipe, tmp_path / "runs/demo/cutmix/0", 0)
    leave(replace(recipe, **change), tmp_path / "runs/demo/cutmix/1", change.get("seed", 1))
    with pytest.raises(SystemExit):
        collect("demo", "cutmix")
    text = capsys.readouterr().err
    assert f"{Path('runs/demo/cutmix/1')} holds a run of other settings: {words}" in text
    assert not (tmp_path / "results").exists()
