"""Trains rows of flowers-lite0 and pets-lite0 for several seeds and writes results/few_photos.csv.

    python benchmarks/few_photos.py --rows plain cutmix samix-p --seeds 0 1 2
    python benchmarks/few_photos.py --suites pets-lite0 --tested-on test

Settings are chosen on validation pictures (`--tested-on val`, the default), whose numbers are in the runs'
summaries. With `--tested-on test` the last weights of every finished run are tested on the official test
pictures, once: what was found stays in the run folder as test.json and is not measured again. The table has a
line for each, told apart by its column `tested_on`; `best` is empty where there was one test only.

Runs go on where they stopped, as in suite.py. Further fields of the recipes go behind `--`, such as
`-- --mixup.mixer runs/mine`; they need a folder of runs of their own (--runs).
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from suite import ENDING, SUPERVISED, cell, check_settings, finished, folder_of, merge_table, train

from samix.commands.fields import override
from samix.recipes import RECIPES, find_recipe
from samix.runs.files import write_text

SUITES = ("flowers-lite0", "pets-lite0")
TABLE = Path("results") / "few_photos.csv"
COLUMNS = ("suite", "method", "seed", "tested_on", *SUPERVISED, "cross_entropy", "pictures", *ENDING)
TESTED = "test.json"
ALL_TEST_PICTURES = ("--data.test", "test", "--data.test_pictures", "null")


class Run(NamedTuple):
    """One row of one suite with one seed."""

    suite: str
    row: str
    seed: int


def main(words: Sequence[str] | None = None) -> int:
    """Trains what is missing, tests it if asked to, collects what is there; 1 if a run failed."""
    options, fields = parse(words)
    rows = options.rows or list(RECIPES[options.suites[0]].rows)
    todo = [Run(suite, row, seed) for suite in options.suites for seed in options.seeds for row in rows]
    for run in todo:
        recipe = override(find_recipe(f"{run.suite}/{run.row}")[1], fields)
        check_settings(folder_of(options.runs, *run), replace(recipe, seed=run.seed))
    if not options.collect:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(lambda run: work(run, options, fields), todo))
    lines = [line for run in todo if (line := describe(run, options.runs, options.tested_on)) is not None]
    merge_table(options.table, COLUMNS, lines, ("suite", "tested_on", "method", "seed"))
    return 0 if options.collect or len(lines) == len(todo) else 1


def parse(words: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """The command line, and what stands behind `--`."""
    words = list(sys.argv[1:] if words is None else words)
    own = words[: words.index("--")] if "--" in words else words
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--rows", nargs="+", help="only these rows, or policies (default: all rows)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tested-on", choices=("val", "test"), default="val")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one thread each")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run folders")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--collect", action="store_true", help="train and test nothing, only write the table")
    return parser.parse_args(own), words[len(own) + 1 :]


def work(run: Run, options: argparse.Namespace, fields: Sequence[str]) -> None:
    """Trains a run that is not finished and, if asked to, tests it once."""
    train(*run, options.runs, fields)
    folder = folder_of(options.runs, *run)
    if options.tested_on == "test" and finished(folder) and not (folder / TESTED).exists():
        test_once(folder)


def test_once(folder: Path) -> None:
    """The last weights of a run on the test pictures; the answer stays beside them."""
    words = ["eval", str(folder), "--json", *ALL_TEST_PICTURES, "--machine.threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "samix", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{folder}: the test failed. {done.stderr.strip()}")
        return
    write_text(folder / TESTED, done.stdout)


def describe(run: Run, runs: Path, tested_on: str) -> dict[str, str] | None:
    """A line of the table; None where the run, or its test, is not there."""
    folder = folder_of(runs, *run)
    if not finished(folder) or (tested_on == "test" and not (folder / TESTED).exists()):
        return None
    values = json.loads((folder / "summary.json").read_text())
    pictures = values.get("test_pictures", "")
    if tested_on == "test":
        first, *_ = json.loads((folder / TESTED).read_text()).values()
        values |= first | {"last": first["top1"], "best": ""}
        pictures = "all"
    values |= {"suite": run.suite, "method": run.row, "tested_on": tested_on, "pictures": pictures}
    return {name: cell(values.get(name, "")) for name in COLUMNS}


if __name__ == "__main__":
    sys.exit(main())
