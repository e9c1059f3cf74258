"""Lines of a table: mean and standard deviation over seeds per method, and which of them are best."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from samix.core.comparing import Value, spread
from samix.report.groups import Group, group_runs
from samix.runs.files import KNN, LINEAR
from samix.runs.folder import Run


class Measure(NamedTuple):
    """A column of the table."""

    name: str
    """Its key in summary.json, or the file that a probe wrote."""
    title: str
    better: Callable[[list[float]], float] | None
    """max or min; None for a cost in which nobody competes."""
    decimals: int


MEASURES = (
    Measure("top1", "top-1 %", max, 2),
    Measure("best", "best %", max, 2),
    Measure("last", "last %", max, 2),
    Measure("ece", "ECE %", min, 2),
    Measure("knn", "k-NN %", max, 2),
    Measure("linear", "linear %", max, 2),
    Measure("nmi", "NMI", max, 3),
    Measure(KNN, "samix knn %", max, 2),
    Measure(LINEAR, "samix linear %", max, 2),
    Measure("seconds", "seconds", None, 0),
)


class Line(NamedTuple):
    """One method of the table."""

    group: Group
    values: dict[str, Value]
    """By name of the measure; empty while no run of the group is finished."""

    @property
    def seeds(self) -> str:
        """'3', or '2 of 3' while some runs are unfinished."""
        finished = sum(run.summary is not None for run in self.group.runs)
        total = len(self.group.runs)
        return str(total) if finished == total else f"{finished} of {total}"


def compare(runs: Iterable[Run]) -> list[Line]:
    """One line per family and method, over the seeds that are finished."""
    return list(map(line_of, group_runs(runs)))


def line_of(group: Group) -> Line:
    """The line of one method."""
    return Line(group, summarize(group.runs))


def summarize(runs: Sequence[Run]) -> dict[str, Value]:
    """Mean and deviation of every measure over the finished runs."""
    values = {}
    for measure in MEASURES:
        numbers = [
            float(number)
            for run in runs
            if run.summary and (number := (run.summary | run.probes).get(measure.name)) is not None
        ]
        if numbers:
            values[measure.name] = spread(numbers)
    return values


def is_best(line: Line, measure: Measure, lines: Sequence[Line]) -> bool:
    """Whether no other method of the same family has a better mean, as far as the table shows it."""
    rivals = [
        each for each in lines if each.group.family == line.group.family and measure.name in each.values
    ]
    if measure.better is None or len(rivals) < 2 or measure.name not in line.values:
        return False
    shown = [round(each.values[measure.name].mean, measure.decimals) for each in rivals]
    return round(line.values[measure.name].mean, measure.decimals) == measure.better(shown)


def measures_of(lines: Sequence[Line]) -> list[Measure]:
    """The measures that any line has; of runs that are not finished, all that supervised training has."""
    known = [measure for measure in MEASURES if any(measure.name in line.values for line in lines)]
    return known or [
        measure for measure in MEASURES if measure.name in ("top1", "best", "last", "ece", "seconds")
    ]


def cell_text(line: Line, measure: Measure) -> str:
    """The text of one number, a dash where it is not known yet."""
    return line.values[measure.name].text(measure.decimals) if measure.name in line.values else "–"


def list_repeats(lines: Sequence[Line]) -> list[str]:
    """Says which runs are left out because their seed is there already."""
    return [
        f"{line.group.method}: seed {run.seed} occurs more than once and counts once; without {run.path}."
        for line in lines
        for run in line.group.copies
    ]
