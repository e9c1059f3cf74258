"""Trains rows of flowers-lite0 and pets-lite0 for several seeds and writes results/few_photos.csv.

    python benchmarks/few_photos.py --rows plain cutmix samix-p --seeds 0 1 2
    python benchmarks/few_photos.py --suites pets-lite0 --tested-on test

Settings are chosen on validation pictures (`--tested-on val`, the default), whose numbers are in the runs'
summaries. With `--tested-on test` the last weights of every finished run are tested on the official test
pictures, once: what was found stays in the run folder as test.json and is not measured again. The table has a
line for each, told apart by its column `tested_on`; `best` is empty where there was one test only.

Runs go on where they stopped, as in `samix bench`. Further fields of the recipes go behind `--`, such as
`-- --mixup.mixer runs/mine`; they need a folder of runs of their own (--runs).
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from samix.commands.suites.plan import Planned, check_settings, is_finished, plan_run
from samix.commands.suites.table import ENDING, SUPERVISED, cell, merge_table
from samix.commands.suites.workers import Work, train_all
from samix.recipes import RECIPES
from samix.runs.files import write_text

SUITES = ("flowers-lite0", "pets-lite0")
TABLE = Path("results") / "few_photos.csv"
COLUMNS = ("suite", "method", "seed", "tested_on", *SUPERVISED, "cross_entropy", "pictures", *ENDING)
TESTED = "test.json"
ALL_TEST_PICTURES = ("--data.test", "test", "--data.test_pictures", "null")


def main(words: Sequence[str] | None = None) -> int:
    """Trains what is missing, tests it if asked to, collects what is there; 1 if a run failed."""
    options, fields = parse(words)
    rows = options.rows or list(RECIPES[options.suites[0]].rows)
    todo = [
        plan_run(suite, row, seed, options.runs, fields)
        for suite in options.suites
        for seed in options.seeds
        for row in rows
    ]
    for run in todo:
        check_settings(run.folder, run.recipe)
    if not options.collect:
        train_all(todo, options.jobs, 1, tell)
        if options.tested_on == "test":
            with ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(test_once, [run.folder for run in todo if is_finished(run.folder)]))
    lines = [line for run in todo if (line := describe(run, options.tested_on)) is not None]
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


def tell(work: Work, event: str) -> None:
    """What happened to a run."""
    if event:
        print(event)


def test_once(folder: Path) -> None:
    """The last weights of a run on the test pictures, unless that was done; the answer stays beside them."""
    if (folder / TESTED).exists():
        return
    words = ["eval", str(folder), "--json", *ALL_TEST_PICTURES, "--machine.threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "samix", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"{folder}: the test failed. {done.stderr.strip()}")
        return
    write_text(folder / TESTED, done.stdout)


def describe(run: Planned, tested_on: str) -> dict[str, str] | None:
    """A line of the table; None where the run, or its test, is not there."""
    if not is_finished(run.folder) or (tested_on == "test" and not (run.folder / TESTED).exists()):
        return None
    values = json.loads((run.folder / "summary.json").read_text())
    pictures = values.get("test_pictures", "")
    if tested_on == "test":
        first, *_ = json.loads((run.folder / TESTED).read_text()).values()
        values |= first | {"last": first["top1"], "best": ""}
        pictures = "all"
    values |= {"suite": run.family, "method": run.row, "tested_on": tested_on, "pictures": pictures}
    return {name: cell(values.get(name, "")) for name in COLUMNS}


if __name__ == "__main__":
    sys.exit(main())
