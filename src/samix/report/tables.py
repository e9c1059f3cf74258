"""Tables over seeds: mean and standard deviation per method, in the terminal and in HTML."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from samix.core.statistics import Value, spread
from samix.core.words import printable
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
WIDE = 100
"""From this width on, a terminal has room for the best and the last epoch; the page always shows them."""
NAME = 24
"""Names of methods up to this length are never broken."""


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


def print_table(runs: Iterable[Run], console: Console) -> None:
    """The comparison in the terminal, a table per family, its best numbers bold."""
    lines = compare(runs)
    for family, members in groupby(lines, key=lambda line: line.group.family):
        if family != lines[0].group.family:
            console.print()
        rows = list(members)
        # Text, not str: names come from files and must not be read as markup.
        console.print(Text(printable(family or "runs"), style="bold"))
        console.print(fitting_table(rows, console))
        for note in list_repeats(rows):
            console.print(Text(printable(note), style="dim"))


def fitting_table(lines: Sequence[Line], console: Console) -> Table:
    """One family's table, with the columns that the terminal has room for."""
    spare = () if console.width >= WIDE else ("best", "last")
    measures = [measure for measure in measures_of(lines) if measure.name not in spare]
    endless = console.options.update_width(1000)  # else a table is never measured wider than the terminal
    table = terminal_table(lines, measures)
    while len(measures) > 1 and console.measure(table, options=endless).minimum > console.width:
        measures.pop()
        table = terminal_table(lines, measures)
    return table


def terminal_table(lines: Sequence[Line], measures: Sequence[Measure]) -> Table:
    """One row per method; only long names may be broken."""
    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    longest = max(len(line.group.method) for line in lines)
    table.add_column("method", overflow="fold", min_width=min(longest, NAME))
    for title in ("seeds", *(measure.title for measure in measures)):
        table.add_column(title, justify="right", no_wrap=True)
    for line in lines:
        numbers = [
            Text(cell_text(line, m), style="bold" if is_best(line, m, lines) else "") for m in measures
        ]
        table.add_row(Text(printable(line.group.method)), Text(line.seeds), *numbers)
    return table


def html_table(lines: Sequence[Line]) -> str:
    """The comparison as an HTML table; every name from a file is escaped."""
    titles = "".join(f'<th scope="col">{escape(measure.title)}</th>' for measure in measures_of(lines))
    head = f'<tr><th scope="col">method</th><th scope="col">seeds</th>{titles}</tr>'
    return f"<table><thead>{head}</thead><tbody>{html_rows(lines)}</tbody></table>"


def html_rows(lines: Sequence[Line]) -> str:
    """One HTML row per method, the best numbers of each family bold."""
    rows, measures = [], measures_of(lines)
    for line in lines:
        texts = [(escape(cell_text(line, measure)), is_best(line, measure, lines)) for measure in measures]
        cells = "".join(f"<td>{f'<b>{text}</b>' if best else text}</td>" for text, best in texts)
        rows.append(f'<tr><th scope="row">{escape(line.group.method)}</th><td>{line.seeds}</td>{cells}</tr>')
    return "\n".join(rows)
