"""samix recipes: the table of recipes."""

import argparse

from rich.console import Console
from rich.table import Table

import samix  # noqa: F401  (prepares torchvision)
from samix.recipes import RECIPES


def run(words: list[str]) -> None:
    """Prints every family with its rows."""
    argparse.ArgumentParser(
        prog="samix recipes", description="List the recipes: samix train FAMILY/ROW."
    ).parse_args(words)
    table = Table("family", "rows", "what")
    for name, family in RECIPES.items():
        table.add_row(name, " ".join(family.rows), family.about)
    Console().print(table)
