"""samix demo: four rows and a page."""

import json

import pytest

from samix.commands import demo
from samix.recipes import find_recipe

NAMES = [f"demo/{row}" for row in demo.ROWS]


def test_value_every_mixed_row_has_the_same_clean_branch_and_lam():
    recipes = {row: find_recipe(f"demo/{row}")[1] for row in demo.ROWS}
    mixed = [recipe for row, recipe in recipes.items() if row != "plain"]
    assert len(mixed) == 3 and {recipe.objective.clean_weight for recipe in mixed} == {1.0}
    assert len({(recipe.objective, recipe.mixup.alpha) for recipe in mixed}) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_value_every_row_is_trained_as_asked_and_shown(call, monkeypatch, write_run, tmp_path, jobs):
    trained = []

    def write_instead(row, folder, own):
        trained.append((row, own))
        assert folder == write_run(f"demo/{row}", row.partition("-")[0], 3).relative_to(tmp_path)

    monkeypatch.setattr(demo, "train_row", write_instead)
    out = call("demo", "--seed", 3, "--epochs", 2, "--jobs", jobs)
    assert sorted(trained) == sorted((row, ["--seed", "3", "--epochs", "2"]) for row in demo.ROWS)
    assert out.splitlines()[-1] == "page: runs/demo/report.html"
    page = (tmp_path / "runs" / "demo" / "report.html").read_text()
    assert all(f"samix train {name}" in page for name in NAMES)


def test_error_a_row_that_fails_stops_the_demo(fail):
    said = fail("demo", "--epochs", 0, "--jobs", 1)
    assert "samix train demo/samix --seed 0 --epochs 0 --out runs/demo/samix/0 --quiet ended early" in said


def test_error_no_jobs(fail):
    assert "--jobs must be at least 1, got 0" in fail("demo", "--jobs", 0)


@pytest.mark.slow
def test_value_four_rows_and_a_page(call, tmp_path):
    call("demo", "--epochs", 1)
    for row in demo.ROWS:
        folder = tmp_path / "runs" / "demo" / row / "0"
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["command"].startswith(f"samix train demo/{row} --seed 0 --epochs 1 --out runs/demo/")
    page = (tmp_path / "runs" / "demo" / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert all((tmp_path / "runs" / name / "0" / "retention.csv").exists() for name in NAMES if "-" in name)
