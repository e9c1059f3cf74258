"""results/SUITE.csv has the runs of its rows, and no others; no line of another run is ever lost."""

import csv
import json
from pathlib import Path

import pytest

from samix.commands.suites.table import merge_table
from samix.engine.machine import Machine

COLLECT = ("--seeds", 2, "--collect")


def read(tmp_path: Path, name: str) -> list[dict[str, str]]:
    with (tmp_path / "results" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("family", "row"), [("demo", "samix"), ("ssl-demo", "moco-v2+samix-c")])
def test_value_runs_of_the_row_are_collected(family, row, call, leave, tmp_path):
    leave(f"{family}/{row}", 1, machine=Machine(threads=1))
    call("bench", family, "--rows", row, *COLLECT)
    (line,) = read(tmp_path, family.replace("-", "_"))
    assert (line["method"], line["seed"], line["commit"]) == (row, "1", "abc")


def test_value_the_mask_has_columns(call, leave, tmp_path):
    mask = {"correlation": 0.97, "gap": 0.05, "deviation": 0.25, "evidence": 0.6}
    folder = leave("demo/samix", 0, {"mask": mask})
    (folder / "retention.csv").write_text("lam,first,second,both\n0.4,.4,.6,.5\n0.5,.6,.62,.61\n")
    leave("demo/plain", 0)
    out = call("bench", "demo", "--rows", "plain", "samix", *COLLECT)
    plain, samix = read(tmp_path, "demo")
    names = ("correlation", "gap", "deviation", "retention")
    assert [samix[name] for name in names] == ["0.9700", "0.0500", "0.2500", "0.6100"]
    assert not any(plain[name] for name in names) and "evidence" not in samix
    assert "0.610" in out and "correlation" in out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 3}, "epochs: there 3, here"),
        ({"seed": 5}, "seed: there 5, here 1"),
        ({"machine": Machine(precision="bf16-mixed")}, "machine.precision: there bf16-mixed, here 32-true"),
    ],
    ids=["setting", "seed", "machine"],
)
def test_error_a_run_of_other_settings(change, words, fail, leave, tmp_path):
    leave("demo/cutmix", 0)
    leave("demo/cutmix", 1, **change)
    text = fail("bench", "demo", "--rows", "cutmix", *COLLECT)
    assert f"{Path('runs/demo/cutmix/1')} holds a run of other settings: {words}" in text
    assert not (tmp_path / "results").exists()


def test_value_fields_are_settings_of_every_row(call, leave, tmp_path):
    for row in ("plain", "cutmix"):
        leave(f"demo/{row}", 0, epochs=3)
    call("bench", "demo", "--rows", "plain", "cutmix", "--epochs", 3, *COLLECT)
    assert [line["method"] for line in read(tmp_path, "demo")] == ["cutmix", "plain"]


def test_error_a_line_of_another_run_is_not_overwritten(call, fail, leave, tmp_path):
    words = ("bench", "demo", "--rows", "plain", "cutmix", *COLLECT)
    leave("demo/plain", 0)
    leave("demo/cutmix", 0)
    call(*words)
    call(*words)  # the same runs again are no others
    leave("demo/cutmix", 0, {"top1": 51.0, "commit": "def"})
    text = fail(*words)
    assert "line of another run for cutmix seed 0 (commit abc)" in text and "--replace" in text
    assert read(tmp_path, "demo")[0]["top1"] == "50.0000"
    call(*words, "--replace")
    assert [line["top1"] for line in read(tmp_path, "demo")] == ["51.0000", "50.0000"]
    call(*words, "--results", "elsewhere")
    assert (tmp_path / "elsewhere" / "demo.csv").exists()


def test_error_a_line_whose_run_is_not_here_is_kept_before_anything_is_trained(fail, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "demo.csv").write_text("suite,method,seed,top1,commit\ndemo,plain,0,70.0,fff\n")
    text = fail("bench", "demo", "--rows", "plain", "--seeds", 1)
    assert "another run for plain seed 0 (commit fff)" in text and not (tmp_path / "runs").exists()


def test_value_lines_of_before_get_the_new_columns_and_keep_their_own(tmp_path):
    path = tmp_path / "results" / "x.csv"
    merge_table(
        path, ("method", "seed", "note"), [{"method": "b", "seed": "10", "note": "kept"}], ("method", "seed")
    )
    new = [{"method": "b", "seed": "9", "gap": "0.1"}, {"method": "a", "seed": "9", "gap": ""}]
    merge_table(path, ("method", "seed", "gap"), new, ("method", "seed"))
    assert path.read_text() == "method,seed,gap,note\na,9,,\nb,9,0.1,\nb,10,,kept\n"


def test_value_json(call, leave):
    for seed, (plain, cutmix) in enumerate([(50.0, 53.0), (52.0, 55.5)]):
        leave("demo/plain", seed, {"top1": plain})
        leave("demo/cutmix", seed, {"top1": cutmix})
    told = json.loads(call("bench", "demo", "--rows", "plain", "cutmix", "samix", *COLLECT, "--json"))
    plain, cutmix = told["rows"]
    assert (told["suite"], told["measure"], told["failed"]) == ("demo", "top1", {})
    assert (plain["rank"], plain["mean"], plain["difference"], plain["seeds"]) == (2, 51.0, None, [0, 1])
    found = cutmix["difference"]
    assert (found["baseline"], found["mean"], found["seeds"]) == ("plain", 3.25, 2)
    assert found["word"] == "more" or found["low"] <= 0
    assert cutmix["rank"] == 1 and cutmix["paper"] == []
