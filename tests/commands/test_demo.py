"""samix demo: four rows and a page."""

import json
from dataclasses import replace

import pytest

from samix.commands import demo
from samix.data import Data
from samix.nn.zoo import Network
from samix.recipes import find_recipe


def test_value_every_row_is_trained_as_asked_and_shown(call, monkeypatch, write_run, tmp_path):
    trained = []

    def write_instead(command, recipe, folder, name, words, *, quiet):
        trained.append((name, recipe.seed, recipe.epochs, words))
        assert folder == write_run(name, name.partition("/")[2], recipe.seed).relative_to(tmp_path)

    monkeypatch.setattr(demo, "train_one", write_instead)
    out = call("demo", "--seed", 3, "--epochs", 2)
    names = [f"demo/{row}" for row in ("plain", "mixup", "cutmix", "samix")]
    assert trained == [(name, 3, 2, [name, "--seed", "3", "--epochs", "2"]) for name in names]
    assert out.splitlines()[-1] == "page: runs/demo/report.html"
    page = (tmp_path / "runs" / "demo" / "report.html").read_text()
    assert all(f"samix train {name}" in page for name in names)


@pytest.mark.slow
def test_value_four_rows_and_a_page(call, monkeypatch, tmp_path):
    def shrink(name: str):
        full_name, recipe = find_recipe(name)
        data = Data(size=16, train_pictures=24, test_pictures=24)
        return full_name, replace(recipe, data=data, encoder=Network(width=4), batch_size=8)

    monkeypatch.setattr(demo, "find_recipe", shrink)
    out = call("demo", "--epochs", 1)
    for row in ("plain", "mixup", "cutmix", "samix"):
        assert (tmp_path / "runs" / "demo" / row / "0" / "summary.json").exists()
        assert f"demo/{row} seed 0: top-1" in out
        summary = json.loads((tmp_path / "runs" / "demo" / row / "0" / "summary.json").read_text())
        assert summary["command"] == f"samix train demo/{row} --seed 0 --epochs 1"
    assert out.splitlines()[-1] == "page: runs/demo/report.html"
    assert "data:image/png;base64," in (tmp_path / "runs" / "demo" / "report.html").read_text()
