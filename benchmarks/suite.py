"""Trains every row of a recipe family for several seeds and writes one line per run to results/.

    python benchmarks/suite.py cifar10-small --seeds 0 1 2 --jobs 2
    python benchmarks/suite.py ssl-small --rows moco-v2 moco-v2+samix-i

Runs go side by side with one thread each; what is finished is not trained again, and what was
interrupted goes on, so the script may be stopped and started at will. A finished run of other settings
than its row has now is refused, not collected.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from samix.commands.fields import from_yaml
from samix.engine.recipe import Recipe, to_dict
from samix.recipes import PRETRAININGS, RECIPES, find_pretraining, find_recipe
from samix.runs.files import write_text
from samix.runs.settings import comparable, differences, list_differences

SUPERVISED = ("top1", "best", "last", "ece")
PRETRAINED = ("knn", "linear", "nmi", "purity", "deviation")
ENDING = ("epochs", "seconds", "images_per_s", "peak_mb", "commit", "command")


def main() -> int:
    """Reads the words, trains what is missing, collects what is there; 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("family", choices=[*RECIPES, *PRETRAININGS], help="a family of `samix recipes`")
    parser.add_argument("--rows", nargs="+", help="only these rows, or policies (default: all rows)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one thread each")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run folders")
    parser.add_argument("--collect", action="store_true", help="train nothing, only write the table")
    options = parser.parse_args()
    rows = options.rows or list((RECIPES | PRETRAININGS)[options.family].rows)
    find = find_pretraining if options.family in PRETRAININGS else find_recipe
    todo = [(row, seed) for seed in options.seeds for row in rows]
    try:
        for row, seed in todo:
            _, recipe = find(f"{options.family}/{row}")
            check_settings(folder_of(options.runs, options.family, row, seed), replace(recipe, seed=seed))
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if not options.collect:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda run: train(options.family, *run, options.runs), todo))
    folders = [folder_of(options.runs, options.family, row, seed) for row, seed in todo]
    done = [folder for folder in folders if finished(folder)]
    name = options.family.replace("-", "_")
    results = PRETRAINED if options.family in PRETRAININGS else SUPERVISED
    update_table(Path("results") / f"{name}.csv", name, ("suite", "method", "seed", *results, *ENDING), done)
    return 0 if options.collect or len(done) == len(todo) else 1


def folder_of(runs: Path, family: str, row: str, seed: int) -> Path:
    """The run folder that `samix train` uses by default."""
    return runs / family / row / str(seed)


def finished(folder: Path) -> bool:
    """A run with a summary is finished."""
    return (folder / "summary.json").exists()


def check_settings(folder: Path, recipe: Recipe) -> None:
    """Refuses a finished run of other settings: its numbers would stand under a name that is not theirs."""
    if not finished(folder):
        return
    there, here = (comparable(to_dict(each)) for each in (from_yaml(folder / "config.yaml"), recipe))
    if changed := differences(there, here):
        raise ValueError(
            f"{folder} holds a run of other settings: {list_differences(changed)}. Remove it, or choose "
            "another folder of runs with --runs."
        )


def train(family: str, row: str, seed: int, runs: Path, fields: Sequence[str] = ()) -> None:
    """One run in a process of its own, with its log beside it; `fields` override those of the recipe."""
    folder = folder_of(runs, family, row, seed)
    if finished(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = "pretrain" if family in PRETRAININGS else "train"
    words = [command, f"{family}/{row}", "--seed", str(seed), "--machine.threads", "1", *fields]
    if runs != Path("runs"):
        words += ["--out", str(folder)]
    with (folder / "train.log").open("a") as log:
        done = subprocess.run(
            [sys.executable, "-m", "samix", *words], stdout=log, stderr=subprocess.STDOUT, check=False
        )
    print(
        f"{family}/{row} seed {seed}: {'done' if done.returncode == 0 else f'failed, see {folder}/train.log'}"
    )


def update_table(path: Path, suite: str, columns: Sequence[str], folders: Iterable[Path]) -> None:
    """results/<suite>.csv: one line per finished run, each with the command and commit that made it.

    Lines of other rows and seeds stay as they are.
    """
    lines = []
    for folder in folders:
        summary = json.loads((folder / "summary.json").read_text())
        masks = {"deviation": summary["mask"]["deviation"]} if "mask" in summary else {}
        values = summary | masks | {"suite": suite, "method": folder.parent.name}
        lines.append({name: cell(values.get(name, "")) for name in columns})
    merge_table(path, columns, lines, ("method", "seed"))


def merge_table(
    path: Path, columns: Sequence[str], new: Iterable[dict[str, str]], keys: Sequence[str]
) -> None:
    """The table with the new lines in it, sorted by these columns; lines with other keys stay as they are."""
    old: list[dict[str, str]] = []
    if path.exists():
        with path.open(newline="") as file:
            old = list(csv.DictReader(file))
    lines = {
        tuple(int(line[key]) if key == "seed" else line[key] for key in keys): line for line in [*old, *new]
    }
    write_table(path, columns, [lines[key] for key in sorted(lines)])


def write_table(path: Path, columns: Sequence[str], lines: Sequence[dict[str, str]]) -> None:
    """Lines as CSV under these columns."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    path.parent.mkdir(exist_ok=True)
    write_text(path, text.getvalue())
    print(f"{len(lines)} lines -> {path}")


def cell(value: object) -> str:
    """A value of the table, floats with four digits."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
