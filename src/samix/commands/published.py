"""The paper's numbers for a recipe, as long as it still is the one that they are of."""

from dataclasses import replace
from typing import Any

from samix.engine.machine import Machine
from samix.engine.recipe import Recipe, to_dict
from samix.recipes import PRETRAININGS, RECIPES, find_pretraining, find_recipe
from samix.recipes.paper import Cell
from samix.runs.settings import comparable


def published(name: str, recipe: Recipe) -> tuple[Cell, ...]:
    """The cells that 'family/row' reproduces; none if a setting that decides what is learned was changed.

    Seed and machine may differ: the paper's numbers are means over seeds, and of other machines.
    """
    family, _, row = name.partition("/")
    found = (RECIPES | PRETRAININGS).get(family)
    cells = found.cells.get(row, ()) if found is not None else ()
    if not cells:
        return ()
    _, own = find_pretraining(name) if family in PRETRAININGS else find_recipe(name)
    return cells if essence(own) == essence(recipe) else ()


def essence(recipe: Recipe) -> dict[str, Any]:
    """The settings that make a recipe what the paper's table says it is."""
    return comparable(to_dict(replace(recipe, seed=0, machine=Machine())))
