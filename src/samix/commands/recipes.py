"""samix recipes: the table of recipes."""

import argparse

from rich.console import Console
from rich.table import Table

from samix.recipes import PRETRAININGS, RECIPES


def run(words: list[str]) -> None:
    """Prints every family with its rows."""
    argparse.ArgumentParser(
        prog="samix recipes",
        description="List the recipes: samix train FAMILY/ROW, samix pretrain FAMILY/METHOD+MIXUP.",
    ).parse_args(words)
    for title, families in (("samix train", RECIPES), ("samix pretrain", PRETRAININGS)):
        table = Table("family", "rows", "what", title=title)
        for name, family in families.items():
            table.add_row(name, " ".join(family.rows), family.about)
        Console().print(table)
