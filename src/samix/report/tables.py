"""Tables over seeds, in the terminal and in HTML."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from samix.core.words import printable
from samix.report.lines import Line, Measure, cell_text, compare, is_best, list_repeats, measures_of
from samix.report.standing import beside, titles_of
from samix.runs.folder import Run

WIDE = 100
"""From this width on, a terminal has room for the best and the last epoch; the page always shows them."""
NAME = 24
"""Names of methods up to this length are never broken."""


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
        if (standing := standing_table(rows)) is not None:
            console.print()
            console.print(standing)
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


def standing_table(lines: Sequence[Line]) -> Table | None:
    """The differences to plain training and to the paper, None where there are none."""
    columns = beside(lines)
    if not columns:
        return None
    table = Table(show_edge=False, pad_edge=False, header_style="dim")
    table.add_column("method", overflow="fold")
    for column in columns:
        table.add_column(Text(column.title), justify="right", overflow="fold")
    for place, line in enumerate(lines):
        table.add_row(Text(printable(line.group.method)), *(Text(column.texts[place]) for column in columns))
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


def html_standing(lines: Sequence[Line]) -> str:
    """The differences to plain training and to the paper as an HTML table, or nothing."""
    columns = beside(lines)
    if not columns:
        return ""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in ("method", *titles_of((), columns)))
    rows = [
        f'<tr><th scope="row">{escape(line.group.method)}</th>'
        + "".join(f"<td>{escape(column.texts[place])}</td>" for column in columns)
        + "</tr>"
        for place, line in enumerate(lines)
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{chr(10).join(rows)}</tbody></table>"
