"""samix eval RUN: tests a trained run again, with every head."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from samix.commands.trained import load_trained, read_recipe
from samix.engine.setup import make_fabric
from samix.engine.testing import evaluate

PARTS = {
    "mix": "the classifier that learns from mixed images, the one to report",
    "one": "the clean branch's own classifier",
    "q": "of the trained network",
    "k": "of its momentum copy",
    "a": "of the average of its weights",
}
"""What the parts of a head's name say."""


def run(words: list[str]) -> None:
    """Prints top-1, top-5, ECE and cross-entropy of every head."""
    parser = argparse.ArgumentParser(
        prog="samix eval",
        usage="samix eval RUN [--json] [--field value ...]",
        description="Test the last checkpoint of a run folder on its test pictures. Fields of the recipe may "
        "be overridden, for example --data.root or --machine.devices.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    # Taken off first: argparse would mistake the value of an unknown field for it.
    named = bool(words) and not words[0].startswith("-")
    options, rest = parser.parse_known_args(words[1:] if named else words)
    if not named:
        raise ValueError("name a run folder first: samix eval RUN [--field value ...].")
    options.run = Path(words[0])
    recipe = read_recipe(options.run, rest)
    fabric = make_fabric(recipe)
    fabric.launch()
    split, model, step = load_trained(options.run, recipe)
    fabric.to_device(model)
    scores = evaluate(fabric, model, split, recipe)
    if not fabric.is_global_zero:
        return
    if options.json:
        print(json.dumps({head: score._asdict() for head, score in scores.items()}, indent=2))
        return
    table = Table("head", "top-1 %", "top-5 %", "ECE %", "cross-entropy", title=f"{options.run}, step {step}")
    for head, score in scores.items():
        table.add_row(head, *(f"{value:.2f}" for value in score))
    Console().print(table)
    print(legend(scores))


def legend(heads: Iterable[str]) -> str:
    """What the names of the heads mean, of those that there are."""
    kinds = dict.fromkeys(part for head in heads for part in head.split("_"))
    return "; ".join(f"{part}: {PARTS[part]}" for part in PARTS if part in kinds)
