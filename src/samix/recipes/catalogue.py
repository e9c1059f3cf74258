"""All recipes in one list, each with what it reproduces and how it is started."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from samix.core.words import suggest
from samix.data.official import OFFICIAL
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import Recipe
from samix.recipes import PRETRAININGS, RECIPES, find_pretraining, find_recipe
from samix.recipes.paper import Cell
from samix.recipes.said import FROZEN, HAND_MADE, LEARNED, TABLES, Said


class Entry(NamedTuple):
    """One recipe."""

    name: str
    about: str
    """What its family is."""
    recipe: Recipe
    cells: tuple[Cell, ...]
    """The numbers of the paper that it reproduces."""

    @property
    def row(self) -> str:
        """Its name without the family's."""
        return self.name.partition("/")[2]

    @property
    def data(self) -> str:
        """The data set; the paper's folders of pictures are ImageNet."""
        name = self.recipe.data.name
        return "imagenet" if self.cells and name in ("folder", "pictures") else name

    @property
    def size(self) -> tuple[int | None, int | None]:
        """Training pictures and classes, as far as they are known."""
        found = OFFICIAL.get(self.data)
        return self.recipe.data.train_pictures or (found and found.train), found and found.classes

    @property
    def command(self) -> str:
        """The words that train it and, without labels, judge its encoder by a linear probe."""
        root = " --data.root IMAGENET" if self.data == "imagenet" else ""
        train = f"samix {self.recipe.command} {self.name}{root}"
        if isinstance(self.recipe, Pretraining):
            return f"{train} && samix linear runs/{self.name}/{self.recipe.seed}"
        return train

    def said(self) -> tuple[Said, ...]:
        """What paper and official configurations say of its settings, of those that it has."""
        tables = dict.fromkeys(cell.table for cell in self.cells)
        found = {said.field: said for table in tables for said in TABLES.get(table, ())}
        if self.cells and self.recipe.mixup.mixes:
            kind = LEARNED if self.recipe.mixup.learned else FROZEN if self.row.endswith("-p") else HAND_MADE
            found |= {said.field: said for said in kind}
        return tuple(said for said in found.values() if read_field(self.recipe, said.field) is not MISSING)


MISSING = object()


def read_field(recipe: Recipe, field: str) -> Any:
    """The value of a setting by its dotted name; MISSING where the recipe has no such setting."""
    value: Any = recipe
    for part in field.split("."):
        value = vars(value).get(part, MISSING) if hasattr(value, "__dict__") else MISSING
    return value


def list_entries() -> Iterator[Entry]:
    """Every named row of every family."""
    for name, family in RECIPES.items():
        for row, recipe in family.rows.items():
            yield Entry(f"{name}/{row}", family.about, recipe, tuple(family.cells.get(row, ())))
    for name, pretraining in PRETRAININGS.items():
        for row in dict.fromkeys((*pretraining.rows, *pretraining.cells)):
            _, found = find_pretraining(f"{name}/{row}")
            yield Entry(f"{name}/{row}", pretraining.about, found, tuple(pretraining.cells.get(row, ())))


def find_entry(name: str) -> Entry:
    """The recipe that `samix train` or `samix pretrain` would take by that name."""
    family, _, _ = name.partition("/")
    if family not in (*RECIPES, *PRETRAININGS):
        raise ValueError(f"unknown recipe {suggest(family, [*RECIPES, *PRETRAININGS])}")
    found: tuple[str, Recipe] = find_pretraining(name) if family in PRETRAININGS else find_recipe(name)
    full, recipe = found
    of = PRETRAININGS[family] if family in PRETRAININGS else RECIPES[family]
    return Entry(full, of.about, recipe, tuple(of.cells.get(full.partition("/")[2], ())))
