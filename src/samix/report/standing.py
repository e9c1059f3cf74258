"""What stands beside the measures: the difference to plain training seed by seed, and the paper's numbers."""

from collections.abc import Sequence
from typing import NamedTuple

from samix.core.comparing import Difference, judge, signed
from samix.report.groups import Group
from samix.report.lines import Line, Measure
from samix.runs.files import LINEAR


class Beside(NamedTuple):
    """A column of words beside the measures."""

    title: str
    texts: tuple[str, ...]
    """One per line of the table, empty where there is nothing to say."""


def beside(lines: Sequence[Line]) -> list[Beside]:
    """The columns of one family that any of its lines fills."""
    differences = differences_of(lines)
    columns = [
        Beside(
            "against plain, by seed [95 %]",
            tuple("" if each is None else each.text(2) for each in differences),
        ),
        Beside("paper", tuple(", ".join(f"{n:g}" for n in paper_of(line.group)) for line in lines)),
        Beside("ours − paper", tuple(", ".join(leads_over_paper(line)) for line in lines)),
    ]
    return [column for column in columns if any(column.texts)]


def titles_of(measures: Sequence[Measure], columns: Sequence[Beside]) -> list[str]:
    """What stands above the numbers and the words beside them."""
    return [*(measure.title for measure in measures), *(column.title for column in columns)]


def differences_of(lines: Sequence[Line]) -> list[Difference | None]:
    """Each line against the plain one of its family, None where there is none or it is the plain one."""
    plain = next((line.group.method for line in lines if line.group.mixup == "plain"), None)
    methods = {line.group.method: scores_by_seed(line.group) for line in lines}
    standings = judge(methods, {} if plain is None else dict.fromkeys(methods, plain))
    return [standings[name].difference if name in standings else None for name in methods]


def scores_by_seed(group: Group) -> dict[int, float]:
    """The accuracy that runs are compared by, of every finished seed."""
    return {
        run.seed: float(run.summary[group.accuracy])
        for run in group.runs
        if run.summary and run.summary.get(group.accuracy) is not None
    }


def paper_of(group: Group) -> tuple[float, ...]:
    """What the paper prints for the recipe of a group; none where some of its runs are no such recipe."""
    found = {run.paper for run in group.runs}
    return found.pop() if len(found) == 1 else ()


def leads_over_paper(line: Line) -> list[str]:
    """Our mean minus each of the paper's numbers: top-1, of a pre-training that of a linear classifier."""
    names = ("top1",) if line.group.accuracy == "top1" else (LINEAR, "linear")
    ours = next((line.values[name].mean for name in names if name in line.values), None)
    return [] if ours is None else [signed(ours - number, 2) for number in paper_of(line.group)]
