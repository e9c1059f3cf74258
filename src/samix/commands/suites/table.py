"""results/SUITE.csv: one line per finished run, each with the command and commit that made it."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from samix.commands.suites.plan import Planned, is_finished
from samix.recipes import PRETRAININGS
from samix.runs.files import SUMMARY, write_text
from samix.runs.records import read_record
from samix.runs.samples import read_retention

SUPERVISED = ("top1", "best", "last", "ece")
PRETRAINED = ("knn", "linear", "nmi", "purity")
MASK = ("correlation", "gap", "deviation", "retention")
"""Of the mask: how its mean follows lam, how far it lies off, how much it varies, what mixing keeps."""
ENDING = ("epochs", "seconds", "images_per_s", "peak_mb", "commit", "command")
HALF = 0.5
"""The lam at which retention is compared."""

Line = dict[str, str]


def columns_of(family: str) -> tuple[str, ...]:
    """The columns of a suite's table."""
    results = PRETRAINED if family in PRETRAININGS else SUPERVISED
    return ("suite", "method", "seed", *results, *MASK, *ENDING)


def suite_name(family: str) -> str:
    """What a suite is called in its table, and the table's file."""
    return family.replace("-", "_")


def describe_runs(runs: Iterable[Planned]) -> list[Line]:
    """The lines of the finished ones among these runs."""
    return [describe_run(run) for run in runs if is_finished(run.folder)]


def describe_run(run: Planned) -> Line:
    """A finished run as a line of the table."""
    summary = read_record(run.folder / SUMMARY) or {}
    values = summary | measure_mask(run.folder, summary)
    values |= {"suite": suite_name(run.family), "method": run.row, "seed": run.seed}
    return {name: cell(values.get(name, "")) for name in columns_of(run.family)}


def measure_mask(folder: Path, summary: Mapping[str, object]) -> dict[str, object]:
    """The mask's figures, of a run that has some: of a learned mask, and what mixing keeps of objects."""
    learned = summary.get("mask")
    found = dict(learned) if isinstance(learned, dict) else {}
    kept = [row["both"] for row in read_retention(folder) or [] if row["lam"] == HALF and "both" in row]
    return found | ({"retention": kept[0]} if kept else {})


def check_lines(path: Path, runs: Iterable[Planned]) -> None:
    """Refuses runs whose line in the table is that of another run, which would be lost."""
    there = {(line["method"], line["seed"]): line for line in read_table(path)}
    for run in runs:
        line = there.get((run.row, str(run.seed)))
        if line is None:
            continue
        here = describe_run(run) if is_finished(run.folder) else None
        if here is None or any(line[name] and here.get(name, "") != line[name] for name in line):
            raise ValueError(
                f"{path} has a line of another run for {run.row} seed {run.seed} (commit "
                f"{line.get('commit') or 'unknown'}). Keep it and write to another folder with --results, or "
                "give it up with --replace."
            )


def read_table(path: Path) -> list[Line]:
    """The lines that are there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def merge_table(path: Path, columns: Sequence[str], new: Iterable[Line], keys: Sequence[str]) -> None:
    """The table with the new lines in it, sorted by these columns; lines with other keys stay as they are."""
    old = read_table(path)
    lines = {
        tuple(int(line[key]) if key == "seed" else line[key] for key in keys): line for line in [*old, *new]
    }
    more = [name for name in (old[0] if old else ()) if name not in columns]
    write_table(path, [*columns, *more], [lines[key] for key in sorted(lines)])


def write_table(path: Path, columns: Sequence[str], lines: Sequence[Line]) -> None:
    """Lines as CSV under these columns; what a line does not have stays empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text.getvalue())


def cell(value: object) -> str:
    """A value of the table, floats with four digits."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
