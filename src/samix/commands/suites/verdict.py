"""What a suite's finished runs say: mean and deviation, difference to a baseline by seed, rank, the mask."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from samix.commands.published import published
from samix.commands.suites.plan import Planned, is_finished
from samix.commands.suites.table import MASK, measure_mask
from samix.core.comparing import Standing, judge
from samix.core.words import printable
from samix.recipes.paper import Cell
from samix.runs.files import SUMMARY
from samix.runs.records import read_record

TITLES = {
    "top1": "top-1 %", "best": "best %", "last": "last %", "ece": "ECE %", "cross_entropy": "cross-entropy",
    "knn": "k-NN %", "linear": "linear %", "nmi": "NMI", "purity": "purity",
}  # fmt: skip
"""What runs can be compared by."""
MASK_NOTE = (
    "Of learned masks: correlation of their mean with lam, gap between the two, deviation within a mask. "
    "retention: share of both objects' pixels that a mixture at lam 0.5 keeps."
)
LESS_IS_BETTER = ("ece", "cross_entropy")


class Finished(NamedTuple):
    """A run and what it came to."""

    run: Planned
    summary: dict[str, Any]


class Verdict(NamedTuple):
    """One row of a suite, over the seeds that are finished."""

    row: str
    standing: Standing
    baseline: str | None
    paper: tuple[Cell, ...]
    """The paper's numbers for this row."""
    mask: dict[str, float]
    """The mask's figures, means over seeds."""
    seconds: float


def judge_runs(runs: Sequence[Planned], measure: str, baselines: Mapping[str, str]) -> list[Verdict]:
    """A verdict for every row that has a finished run with this measure, in the order of the rows."""
    by_row: dict[str, list[Finished]] = defaultdict(list)
    for run in runs:
        if is_finished(run.folder):
            found = Finished(run, read_record(run.folder / SUMMARY) or {})
            if found.summary.get(measure) is not None:
                by_row[run.row].append(found)
    methods = {
        row: {run.seed: float(summary[measure]) for run, summary in found} for row, found in by_row.items()
    }
    standings = judge(methods, baselines, best=min if measure in LESS_IS_BETTER else max)
    return [
        Verdict(
            row,
            standing,
            None if baselines.get(row) == row else baselines.get(row),
            paper_of(by_row[row][0].run, measure),
            mean_mask(by_row[row]),
            mean(float(summary.get("seconds") or 0) for _, summary in by_row[row]),
        )
        for row, standing in standings.items()
    ]


def paper_of(run: Planned, measure: str) -> tuple[Cell, ...]:
    """The paper's numbers of a row, where the measure is the one that its tables print."""
    printed = "linear" if run.recipe.command == "pretrain" else "top1"
    return published(f"{run.family}/{run.row}", run.recipe) if measure == printed else ()


def mean_mask(found: Sequence[Finished]) -> dict[str, float]:
    """Each figure of the mask over the runs that have it."""
    measured: dict[str, list[float]] = defaultdict(list)
    for run, summary in found:
        for name, value in measure_mask(run.folder, summary).items():
            if name in MASK:
                measured[name].append(float(str(value)))
    return {name: mean(values) for name, values in measured.items()}


def paper_texts(verdict: Verdict) -> tuple[str, str]:
    """The paper's numbers, and ours minus each of them."""
    numbers = list(dict.fromkeys(cell.number for cell in verdict.paper))
    ours = verdict.standing.value.mean
    return (
        ", ".join(f"{number:g}" for number in numbers),
        ", ".join(f"{ours - number:+.2f}" for number in numbers),
    )


def print_verdicts(verdicts: Sequence[Verdict], measure: str, console: Console) -> None:
    """The tables at the end of a suite: who is ahead, and what it took with which masks."""
    if not verdicts:
        return
    names = [verdict.row for verdict in verdicts]
    against = dict.fromkeys(verdict.baseline for verdict in verdicts if verdict.standing.difference)
    title = f"against {next(iter(against))}" if len(against) == 1 else "against its method alone"
    standings = {
        "rank": [str(verdict.standing.rank) for verdict in verdicts],
        "seeds": [str(len(verdict.standing.seeds)) for verdict in verdicts],
        TITLES[measure]: [verdict.standing.value.text(2) for verdict in verdicts],
        f"{title} [95 %]": [difference_text(verdict.standing) for verdict in verdicts],
        "paper": [paper_texts(verdict)[0] for verdict in verdicts],
        "ours − paper": [paper_texts(verdict)[1] for verdict in verdicts],
    }
    costs = {
        **{name: [mask_text(verdict, name) for verdict in verdicts] for name in MASK},
        "seconds": [f"{verdict.seconds:.0f}" for verdict in verdicts],
    }
    for columns in (standings, costs):
        console.print(make_table(names, columns))
        console.print()
    if any(verdict.mask for verdict in verdicts):
        console.print(Text(MASK_NOTE, style="dim"))
    if against:
        note = "Differences seed by seed, with 95 % intervals (t distribution); tie: the interval includes 0."
        console.print(Text(note, style="dim"))


def make_table(names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Table:
    """Rows by their names; a column that nobody fills is left out."""
    kept = {title: cells for title, cells in columns.items() if any(cells)}
    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    table.add_column("row", overflow="fold")
    for title in kept:
        table.add_column(title, justify="right", overflow="fold")
    for cells in zip(names, *kept.values(), strict=True):
        table.add_row(*(Text(printable(text)) for text in cells))
    return table


def mask_text(verdict: Verdict, name: str) -> str:
    """A figure of the mask, nothing where there is none."""
    return f"{verdict.mask[name]:.3f}" if name in verdict.mask else ""


def difference_text(standing: Standing) -> str:
    """'+1.25 [+0.31, +2.19] more', or nothing without a baseline."""
    return "" if standing.difference is None else standing.difference.text(2)


def as_plain_values(verdict: Verdict) -> dict[str, Any]:
    """A verdict for JSON."""
    standing, difference = verdict.standing, verdict.standing.difference
    told = difference and {
        "baseline": verdict.baseline, **difference._asdict(), "word": difference.word
    }  # fmt: skip
    return {
        "row": verdict.row,
        **standing.value._asdict(),
        "seeds": standing.seeds,
        "rank": standing.rank,
        "difference": told,
        "paper": [cell._asdict() for cell in verdict.paper],
        "mask": verdict.mask,
        "seconds": verdict.seconds,
    }
