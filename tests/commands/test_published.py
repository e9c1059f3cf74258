"""The paper's numbers go with a recipe as the paper has it, and with no other."""

from dataclasses import replace

import pytest

from samix.commands import published as module
from samix.commands.published import published
from samix.engine.machine import Machine
from samix.recipes import RECIPES, find_recipe
from samix.recipes.paper import Cell

CELL = Cell("tab:x", ("SAMix",), "R-18", 70.85)


@pytest.fixture(autouse=True)
def cells(monkeypatch):
    family = RECIPES["demo"]._replace(cells={"samix": (CELL,)})
    monkeypatch.setitem(RECIPES, "demo", family)
    monkeypatch.setattr(module, "RECIPES", RECIPES)


def test_value_a_recipe_as_it_is():
    recipe = find_recipe("demo/samix")[1]
    assert published("demo/samix", recipe) == (CELL,)
    assert published("demo/samix", replace(recipe, seed=3, machine=Machine(devices=2, threads=1))) == (CELL,)


def test_value_a_changed_recipe_has_none():
    recipe = find_recipe("demo/samix")[1]
    assert published("demo/samix", replace(recipe, epochs=3)) == ()
    assert published("demo/plain", find_recipe("demo/plain")[1]) == ()
    assert published("mine/samix", recipe) == ()


def test_value_a_run_keeps_them(call, small, tmp_path, read_json, monkeypatch):
    monkeypatch.setattr("samix.commands.launch.published", lambda name, recipe: (CELL,))
    call("train", "demo/plain", *small, "--quiet")
    folder = tmp_path / "runs" / "demo" / "plain" / "0"
    told = {"table": "tab:x", "row": ["SAMix"], "column": "R-18", "number": 70.85}
    assert read_json(folder / "run.json")["paper"] == [told]
    assert "70.85" in call("report", folder)
