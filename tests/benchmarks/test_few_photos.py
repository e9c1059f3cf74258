"""The table of few photographs: which numbers are of validation and which of test pictures."""

import csv
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from samix.engine.recipe import to_dict
from samix.recipes import find_recipe

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NUMBERS = {
    "top1": 50.0, "best": 52.0, "last": 49.0, "ece": 5.0, "cross_entropy": 1.25, "epochs": 20, "seconds": 1.0,
    "test_pictures": 1480, "commit": "abc", "command": "samix train",
}  # fmt: skip
TESTED = {"mix_q": {"top1": 47.5, "top5": 80.0, "ece": 6.0, "cross_entropy": 1.5}}


@pytest.fixture
def few_photos(tmp_path, monkeypatch):
    """The benchmark, in a folder of its own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("few_photos", BENCHMARKS / "few_photos.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    return module


def leave(suite: str, row: str, seed: int, tested: bool = False) -> Path:
    """What a finished run leaves behind, as far as the benchmark reads it."""
    folder = Path("runs") / suite / row / str(seed)
    folder.mkdir(parents=True)
    recipe = replace(find_recipe(f"{suite}/{row}")[1], seed=seed)
    (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(recipe)))
    (folder / "summary.json").write_text(json.dumps(NUMBERS | {"seed": seed}))
    if tested:
        (folder / "test.json").write_text(json.dumps(TESTED))
    return folder


def read_table() -> list[dict[str, str]]:
    with Path("results/few_photos.csv").open() as file:
        return list(csv.DictReader(file))


def test_value_lines_of_validation_and_test_stand_side_by_side(few_photos):
    leave("pets-lite0", "cutmix", 0, tested=True)
    leave("pets-lite0", "cutmix", 1)
    words = ["--suites", "pets-lite0", "--rows", "cutmix", "--seeds", "0", "1", "--collect"]
    assert few_photos.main(words) == few_photos.main([*words, "--tested-on", "test"]) == 0
    test, *val = read_table()
    assert [(line["tested_on"], line["seed"]) for line in (test, *val)] == [
        ("test", "0"),
        ("val", "0"),
        ("val", "1"),
    ]
    assert (val[0]["top1"], val[0]["best"], val[0]["cross_entropy"]) == ("50.0000", "52.0000", "1.2500")
    assert (test["top1"], test["last"], test["best"]) == ("47.5000", "47.5000", "")
    assert (test["ece"], test["cross_entropy"], test["commit"]) == ("6.0000", "1.5000", "abc")


def test_value_columns_are_those_of_the_other_tables_and_more(few_photos):
    with (BENCHMARKS.parent / "results" / "cifar10_small.csv").open() as file:
        known = next(csv.reader(file))
    assert set(few_photos.COLUMNS) - set(known) == {"tested_on", "cross_entropy", "pictures"}
    of_masks = {"correlation", "gap", "deviation", "retention"}  # since `samix bench` writes such tables
    assert set(known) - of_masks <= set(few_photos.COLUMNS)


def test_value_a_finished_run_is_tested_once(few_photos, monkeypatch):
    folder, calls = leave("flowers-lite0", "plain", 0), []

    def run(words, **_):
        calls.append(words)
        return type("Done", (), {"returncode": 0, "stdout": json.dumps(TESTED), "stderr": ""})

    monkeypatch.setattr(few_photos.subprocess, "run", run)
    words = ["--suites", "flowers-lite0", "--rows", "plain", "--seeds", "0", "--jobs", "1"]
    assert few_photos.main(words) == 0 and not calls
    for _ in range(2):
        assert few_photos.main([*words, "--tested-on", "test"]) == 0
    (call,) = calls
    assert call[3:5] == ["eval", str(folder)] and "--data.test" in call
    assert json.loads((folder / "test.json").read_text()) == TESTED


def test_error_runs_of_other_settings_are_refused(few_photos):
    leave("pets-lite0", "samix-p", 0)
    words = ["--suites", "pets-lite0", "--rows", "samix-p", "--seeds", "0", "--collect"]
    with pytest.raises(ValueError, match=r"other settings: mixup.mixer: there photos, here mine"):
        few_photos.main([*words, "--", "--mixup.mixer", "mine"])
