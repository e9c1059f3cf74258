"""samix demo: plain, Mixup, CutMix and SAMix on the embedded set, and one page about them."""

import argparse
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from samix.report import find_runs, print_table, write_page

# The longest first, so that two at a time end together. Every mixed row has the same clean branch.
ROWS = ("samix", "mixup-clean", "cutmix-clean", "plain")


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
    parser.add_argument("--jobs", type=int, default=2, help="rows trained side by side, one thread each")
    options = parser.parse_args(words)
    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}.")
    own = ["--seed", str(options.seed)]
    own += [] if options.epochs is None else ["--epochs", str(options.epochs)]
    folders = [options.out / row / str(options.seed) for row in ROWS]
    print(f"training {', '.join(ROWS)}, {options.jobs} at a time", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda row, folder: train_row(row, folder, own), ROWS, folders))
    runs = find_runs(folders)
    print_table(runs, Console())
    print(f"page: {write_page(runs, options.out / 'report.html')}")


def train_row(row: str, folder: Path, own: list[str]) -> None:
    """`samix train` in a process of its own; it says itself what came out, or what went wrong."""
    words = ["train", f"demo/{row}", *own, "--out", str(folder), "--quiet"]
    if subprocess.run([sys.executable, "-m", "samix", *words], check=False).returncode:
        raise ValueError(f"{shlex.join(['samix', *words])} ended early; what it said stands above.")
