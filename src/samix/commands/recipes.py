"""samix recipes [NAME]: the list of recipes, one explained, or all as JSON beside the paper's numbers."""

import argparse
import json
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from samix.commands.pace import estimated_hours, read_pace
from samix.core.words import suggest
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import choice_name, policy_name
from samix.recipes import PRETRAININGS, RECIPES
from samix.recipes.catalogue import Entry, find_entry, list_entries, read_field
from samix.recipes.paper import Cell

Pace = dict[str, float]
FILTERS: dict[str, Callable[[Entry], set[str]]] = {
    "table": lambda entry: {cell.table for cell in entry.cells},
    "dataset": lambda entry: {entry.data, entry.recipe.data.name},
    "encoder": lambda entry: {entry.recipe.encoder.name},
    "method": lambda entry: methods_of(entry),
}
"""What a filter's word is compared with."""


def run(words: list[str]) -> None:
    """Prints families, the rows of some, or what one recipe is."""
    parser = make_parser()
    options = parser.parse_args(words)
    pace = read_pace()
    given = {name: getattr(options, name) for name in FILTERS if getattr(options, name) is not None}
    if options.name and (given or "/" in options.name):
        if given:
            raise ValueError("a recipe's name and filters were both given; leave one out.")
        entry = find_entry(options.name)
        print(as_json([entry], pace)) if options.json else explain(entry, pace)
        return
    chosen = choose(list(list_entries()), given)
    if options.name:
        find_entry(options.name)  # refuses unknown families
        chosen = [entry for entry in chosen if entry.name.startswith(f"{options.name}/")]
    if options.json:
        print(as_json(chosen, pace))
    elif given or options.name:
        Console().print(as_table(chosen, pace))
    else:
        print_families()


def make_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="samix recipes",
        description="List the recipes: samix train FAMILY/ROW, samix pretrain FAMILY/METHOD+MIXUP.",
        epilog="Hours are those of this machine, of recipes that were rehearsed: samix train NAME --dry-run.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a family: its rows; FAMILY/ROW: that recipe")
    parser.add_argument("--table", help="rows that reproduce this table of the paper, as tab:sl_IN_torch")
    parser.add_argument("--dataset", help="rows on these pictures")
    parser.add_argument("--encoder", help="rows with this network")
    parser.add_argument("--method", help="rows with this mixup, or with this self-supervised method")
    parser.add_argument("--json", action="store_true", help="one object per recipe and number of the paper")
    return parser


def methods_of(entry: Entry) -> set[str]:
    """The words by which one may ask for a recipe's method: its mixup, its row, its self-supervision."""
    words = {policy_name(entry.recipe), entry.row, *entry.row.split("+", 1)}
    return words | ({choice_name(entry.recipe, "method")} if isinstance(entry.recipe, Pretraining) else set())


def choose(entries: list[Entry], given: dict[str, str]) -> list[Entry]:
    """The entries that every filter lets through; a word that none of all entries has is refused."""
    for name, word in given.items():
        known = sorted(set().union(*(FILTERS[name](entry) for entry in entries)))
        full = f"tab:{word}" if name == "table" and f"tab:{word}" in known else word
        if full not in known:
            raise ValueError(f"unknown {name} {suggest(word, known, most=40)}")
        given[name] = full
    return [entry for entry in entries if all(word in FILTERS[name](entry) for name, word in given.items())]


def as_json(entries: Sequence[Entry], pace: Pace) -> str:
    """A list of objects, one per number of the paper; other recipes stand there once."""
    return json.dumps(
        [describe(entry, cell, pace) for entry in entries for cell in entry.cells or (None,)], indent=1
    )


def describe(entry: Entry, cell: Cell | None, pace: Pace) -> dict[str, Any]:
    """One object of the list; a row with several words is a list of them, as the paper has two columns."""
    recipe, (pictures, classes) = entry.recipe, entry.size
    row = None if cell is None else cell.row[0] if len(cell.row) == 1 else list(cell.row)
    return {
        "name": entry.name,
        "table": cell and cell.table,
        "row": row,
        "column": cell and cell.column,
        "paper": cell and cell.number,
        "command": entry.command,
        "dataset": entry.data,
        "pictures": pictures,
        "classes": classes,
        "encoder": recipe.encoder.name,
        "mixup": policy_name(recipe),
        "method": choice_name(recipe, "method") if isinstance(recipe, Pretraining) else None,
        "size": recipe.data.size,
        "epochs": recipe.epochs,
        "batch_size": recipe.batch_size,
        "hours_here": estimated_hours(entry, pace),
    }


def print_families() -> None:
    """Every family with its rows."""
    for title, families in (("samix train", RECIPES), ("samix pretrain", PRETRAININGS)):
        table = Table("family", "rows", "what", title=title)
        for name, family in families.items():
            table.add_row(name, " ".join(family.rows), family.about)
        Console().print(table)
    print("`samix recipes FAMILY` lists a family's rows beside the paper's numbers, FAMILY/ROW explains one.")


def as_table(entries: Sequence[Entry], pace: Pace) -> Table:
    """A line per recipe."""
    table = Table(title=f"{len(entries)} recipes")
    for column in ("recipe", "the paper's table and column"):
        table.add_column(column, overflow="fold")
    for column in ("paper %", "hours here"):
        table.add_column(column, justify="right")
    for entry in entries:
        places = "\n".join(f"{cell.table}, {cell.column}" for cell in entry.cells)
        numbers = "\n".join(f"{cell.number:.2f}" for cell in entry.cells)
        table.add_row(entry.name, places, numbers, in_hours(estimated_hours(entry, pace)))
    return table


def in_hours(hours: float | None) -> str:
    """Hours for a person; nothing where they are not known."""
    return "" if hours is None else f"{hours:.1f}" if hours < 10 else f"{hours:,.0f}"


def explain(entry: Entry, pace: Pace) -> None:
    """What one recipe is: pictures, schedule, sources of its settings, and how it is started."""
    recipe, (pictures, classes) = entry.recipe, entry.size
    known = f", {pictures:,} pictures" if pictures else ""
    known += f" of {classes:,} classes" if classes else ""
    optimizer = recipe.optimizer
    print(f"{entry.name}: {entry.about}\n")
    print(f"data      {entry.data}{known}, {recipe.data.size} px")
    print(f"network   {recipe.encoder.name}, weights: {recipe.encoder.weights or 'random'}")
    print(f"mixup     {policy_name(recipe)}")
    print(
        f"schedule  {recipe.epochs} epochs in batches of {recipe.batch_size}, {optimizer.name}, "
        f"lr {optimizer.lr:g} to {optimizer.min_lr:g}, weight decay {optimizer.weight_decay:g}"
    )
    for cell in entry.cells:
        print(f"paper     {cell.number:.2f} % ({cell.table}, {' '.join(cell.row)}, {cell.column})")
    hours = estimated_hours(entry, pace)
    print(f"here      {in_hours(hours)} hours on this machine\n" if hours else "")
    for said in entry.said():
        value = read_field(entry.recipe, said.field)
        print(f"{said.field} = {'none' if value is None else value}")
        for source, text in (("paper", said.paper), ("official", said.official), ("why", said.why)):
            if text not in ("", "-"):
                print(textwrap.fill(text, 100, initial_indent=f"    {source:<9}", subsequent_indent=13 * " "))
    if entry.said():
        print()
    print(f"{entry.command}\nsamix {recipe.command} {entry.name} --dry-run    two steps, to see that it runs")
    print(f"samix {recipe.command} {entry.name} --help       every setting")
