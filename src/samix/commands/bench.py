"""samix bench SUITE: every row of a family with several seeds, its table, and what the seeds say."""

import argparse
import json
from pathlib import Path

from rich.console import Console

from samix.commands.suites.launchers import LAUNCHERS
from samix.commands.suites.live import Board
from samix.commands.suites.plan import (
    DEFAULT_RUNS,
    Planned,
    baselines_of,
    check_settings,
    is_finished,
    plan_suite,
)
from samix.commands.suites.table import check_lines, columns_of, describe_runs, merge_table, suite_name
from samix.commands.suites.verdict import TITLES, as_plain_values, judge_runs, print_verdicts
from samix.commands.suites.workers import train_all
from samix.core.words import suggest
from samix.recipes import PRETRAININGS

USAGE = """samix bench SUITE [--rows ROW ...] [--seeds N] [--jobs N] [--baseline ROW] [--field value ...]
       samix bench SUITE --collect
       samix bench SUITE --print [plain|torchrun|slurm]"""

EPILOG = """Runs that are finished are not trained again, and what was interrupted goes on: the same command
may be stopped and started at will. A finished run of other settings than its row has now is refused.

examples:
  samix bench demo --seeds 3 --jobs 2
  samix bench cifar10-small --rows plain mixup samix --baseline mixup
  samix bench demo --epochs 5 --runs runs/short --results results/short
  samix bench cifar100-r18 --machine.devices 4 --print slurm"""


def run(words: list[str]) -> None:
    """Trains what is missing, writes the table, prints what the seeds say."""
    parser = make_parser()
    # Taken off first: argparse would mistake the value of an unknown field for it.
    named = bool(words) and not words[0].startswith("-")
    options, fields = parser.parse_known_args(words[1:] if named else words)
    if not named:
        raise ValueError("name a suite first, a family of `samix recipes`: samix bench demo.")
    check_options(options, fields)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    runs = plan_suite(words[0], options.rows, seeds, options.runs, fields)
    if options.print is not None:
        print_lines(runs, options.print, options.threads)
        return
    bench(words[0], runs, options)


def make_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="samix bench", usage=USAGE, epilog=EPILOG, allow_abbrev=False,
        description="Train every row of a family with several seeds, side by side, and compare them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="these rows, or mixups (default: all rows)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="how many seeds (default: 3)")
    parser.add_argument(
        "--first-seed", type=int, default=0, metavar="S", help="the first of them (default: 0)"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs side by side (default: 2)")
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="CPU threads of each run (default: 1)"
    )
    parser.add_argument("--runs", type=Path, default=DEFAULT_RUNS, help="folder of the run folders")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the table SUITE.csv")
    parser.add_argument("--replace", action="store_true", help="replace the table's lines of other runs")
    parser.add_argument(
        "--baseline", metavar="ROW", help="what rows are compared with (default: the one that mixes nothing)"
    )
    parser.add_argument(
        "--measure", help=f"what they are compared by: {', '.join(TITLES)} (default: top1, or knn)"
    )
    parser.add_argument("--collect", action="store_true", help="train nothing, only write the table")
    parser.add_argument("--json", action="store_true", help="print JSON; progress goes to the error stream")
    parser.add_argument(
        "--print", nargs="?", const="all", metavar="HOW",
        help=f"only list the commands: {', '.join(LAUNCHERS)} (default: all of them)",
    )  # fmt: skip
    return parser


def check_options(options: argparse.Namespace, fields: list[str]) -> None:
    """Refuses what no suite can do."""
    for name, least in (("seeds", 1), ("first_seed", 0), ("jobs", 1), ("threads", 1)):
        if getattr(options, name) < least:
            shown = name.replace("_", "-")
            raise ValueError(f"--{shown} must be at least {least}, got {getattr(options, name)}.")
    if options.measure is not None and options.measure not in TITLES:
        raise ValueError(f"unknown measure {suggest(options.measure, TITLES)}")
    if options.print not in (None, "all", *LAUNCHERS):
        raise ValueError(f"--print: unknown way {suggest(options.print, LAUNCHERS)}")
    own = {"--seed": "--seeds and --first-seed", "--machine.threads": "--threads", "--out": "--runs"}
    for word in fields:
        if (name := word.partition("=")[0]) in own:
            raise ValueError(f"{name} differs from run to run or is the suite's own: use {own[name]}.")


def bench(family: str, runs: list[Planned], options: argparse.Namespace) -> None:
    """Trains, collects, judges."""
    baselines = baselines_of(list(dict.fromkeys(run.row for run in runs)), options.baseline)
    measure = options.measure or ("knn" if family in PRETRAININGS else "top1")
    table = options.results / f"{suite_name(family)}.csv"
    check_runs(runs, table, options)
    console = Console(stderr=options.json)
    failed: dict[str, str] = {}
    if not options.collect:
        with Board(console, family, measure, options.jobs) as board:
            try:
                failed = train_all(runs, options.jobs, options.threads, board).failed
            finally:
                done = sum(is_finished(run.folder) for run in runs)
                console.print(f"{done} of {len(runs)} runs are finished", highlight=False)
    lines = describe_runs(runs)
    merge_table(table, columns_of(family), lines, ("method", "seed"))
    verdicts = judge_runs(runs, measure, baselines)
    if options.json:
        rows = [as_plain_values(verdict) for verdict in verdicts]
        told = {"suite": family, "measure": measure, "table": str(table), "failed": failed, "rows": rows}
        print(json.dumps(told, indent=2))
    else:
        print_verdicts(verdicts, measure, console)
        print(f"table: {table}, {len(lines)} lines of these runs; page: samix report {options.runs / family}")
    if failed:
        names = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise ValueError(f"{len(failed)} of {len(runs)} runs failed. {names} The same command tries again.")


def check_runs(runs: list[Planned], table: Path, options: argparse.Namespace) -> None:
    """Refuses, before anything is trained, runs of other settings, lines of other runs and foreign nodes."""
    for run in runs:
        check_settings(run.folder, run.recipe)
        if run.recipe.machine.nodes > 1 and not options.collect:
            raise ValueError(
                f"machine.nodes is {run.recipe.machine.nodes}, and `samix bench` starts processes on one "
                "machine only. For several, list the commands with --print torchrun or --print slurm."
            )
    if not options.replace:
        present = [run for run in runs if is_finished(run.folder)]
        check_lines(table, present if options.collect else runs)


def print_lines(runs: list[Planned], how: str, threads: int) -> None:
    """The commands of all runs, of one kind as a script, or of every kind under the name of its run."""
    for run in runs:
        if how == "all":
            print(f"# {run.name}")
        for name, line in LAUNCHERS.items():
            if how in ("all", name):
                print(line(run, threads))
