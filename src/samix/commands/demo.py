"""samix demo: plain, Mixup, CutMix and SAMix on the embedded set, and one page about them."""

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from samix.commands.launch import train_one
from samix.commands.train import COMMAND
from samix.recipes import find_recipe
from samix.report import find_runs, print_table, write_page

ROWS = ("plain", "mixup", "cutmix", "samix")


def run(words: list[str]) -> None:
    """Trains the four rows (or goes on with them) and writes report.html."""
    parser = argparse.ArgumentParser(
        prog="samix demo",
        description="Train plain, Mixup, CutMix and SAMix on the embedded pictures, then write one page "
        "with accuracies, curves and mixed images. No data needed; a few minutes on two cores.",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder of the runs and the page")
    parser.add_argument("--seed", type=int, default=0, help="seed of all runs")
    parser.add_argument("--epochs", type=int, help="shorter or longer than the recipe")
    options = parser.parse_args(words)
    for row in ROWS:
        name, recipe = find_recipe(f"demo/{row}")
        recipe = replace(
            recipe, seed=options.seed, epochs=recipe.epochs if options.epochs is None else options.epochs
        )
        folder = options.out / row / str(options.seed)
        same = [name, "--seed", str(options.seed)]  # what trains this row without the demo
        same += [] if options.epochs is None else ["--epochs", str(options.epochs)]
        train_one(COMMAND, recipe, folder, name, same, quiet=False)
    runs = find_runs([options.out / row / str(options.seed) for row in ROWS])
    print_table(runs, Console())
    print(f"page: {write_page(runs, options.out / 'report.html')}")
