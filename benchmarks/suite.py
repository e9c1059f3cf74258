"""Trains every row of a recipe family for several seeds and writes one line per run to results/.

    python benchmarks/suite.py cifar10-small --seeds 0 1 2 --jobs 2
    python benchmarks/suite.py ssl-small --rows moco-v2 moco-v2+samix-i

Runs go side by side with one thread each; what is finished is not trained again, and what was
interrupted goes on, so the script may be stopped and started at will.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import samix  # noqa: F401  (prepares torchvision)
from samix.engine.checkpoint import write_text
from samix.recipes import PRETRAININGS, RECIPES

SUPERVISED = ("top1", "best", "last", "ece")
PRETRAINED = ("knn", "linear", "nmi", "purity", "deviation")
ENDING = ("epochs", "seconds", "images_per_s", "peak_mb", "commit", "command")


def main() -> None:
    """Reads the words, trains what is missing, collects what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("family", choices=[*RECIPES, *PRETRAININGS], help="a family of `samix recipes`")
    parser.add_argument("--rows", nargs="+", help="only these rows (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one thread each")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run folders")
    parser.add_argument("--collect", action="store_true", help="train nothing, only write the table")
    options = parser.parse_args()
    rows = options.rows or list((RECIPES | PRETRAININGS)[options.family].rows)
    todo = [(row, seed) for seed in options.seeds for row in rows]
    if not options.collect:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda run: train(options.family, *run, options.runs), todo))
    name = options.family.replace("-", "_")
    found = [folder_of(options.runs, options.family, row, seed) for row, seed in sorted(todo, key=str)]
    results = PRETRAINED if options.family in PRETRAININGS else SUPERVISED
    columns = ("suite", "method", "seed", *results, *ENDING)
    write_table(
        Path("results") / f"{name}.csv", name, columns, (folder for folder in found if finished(folder))
    )


def folder_of(runs: Path, family: str, row: str, seed: int) -> Path:
    """The run folder that `samix train` uses by default."""
    return runs / family / row / str(seed)


def finished(folder: Path) -> bool:
    """A run with a summary is finished."""
    return (folder / "summary.json").exists()


def train(family: str, row: str, seed: int, runs: Path) -> None:
    """One run in a process of its own, with its log beside it."""
    folder = folder_of(runs, family, row, seed)
    if finished(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = "pretrain" if family in PRETRAININGS else "train"
    words = [command, f"{family}/{row}", "--seed", str(seed), "--machine.threads", "1"]
    if runs != Path("runs"):
        words += ["--out", str(folder)]
    with (folder / "train.log").open("a") as log:
        done = subprocess.run(
            [sys.executable, "-m", "samix", *words], stdout=log, stderr=subprocess.STDOUT, check=False
        )
    print(
        f"{family}/{row} seed {seed}: {'done' if done.returncode == 0 else f'failed, see {folder}/train.log'}"
    )


def write_table(path: Path, suite: str, columns: Sequence[str], folders: Iterable[Path]) -> None:
    """results/<suite>.csv: one line per finished run, each with the command and commit that made it."""
    lines = [",".join(columns)]
    for folder in folders:
        summary = json.loads((folder / "summary.json").read_text())
        masks = {"deviation": summary["mask"]["deviation"]} if "mask" in summary else {}
        values = summary | masks | {"suite": suite, "method": summary["recipe"].split("/")[1]}
        lines.append(row_text(values, columns))
    path.parent.mkdir(exist_ok=True)
    write_text(path, "\n".join(lines) + "\n")
    print(f"{len(lines) - 1} runs -> {path}")


def row_text(values: dict[str, object], columns: Sequence[str]) -> str:
    """One line of CSV, floats with four digits, nothing where a run has no such result."""
    text = io.StringIO()
    cells = [f"{v:.4f}" if isinstance(v, float) else v for v in (values.get(name, "") for name in columns)]
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


if __name__ == "__main__":
    main()
