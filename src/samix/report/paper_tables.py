"""The comparison as a table for a text: Markdown or LaTeX, a table per family, best numbers bold."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from samix.core.words import printable
from samix.report.lines import Line, cell_text, compare, is_best, measures_of
from samix.report.standing import beside, titles_of
from samix.runs.folder import Run

LATEX_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
}
"""What LaTeX would read as a command; a bracket behind a line's end would be its length."""


class Cells(NamedTuple):
    """A table as texts: names of columns, rows, and which cells are best."""

    titles: list[str]
    rows: list[list[str]]
    best: list[list[bool]]


def cells_of(lines: Sequence[Line]) -> Cells:
    """One family: its methods, seeds, measures, and what stands beside them."""
    measures, columns = measures_of(lines), beside(lines)
    rows, best = [], []
    for place, line in enumerate(lines):
        texts = [cell_text(line, measure) for measure in measures]
        rows.append([line.group.method, line.seeds, *texts, *(column.texts[place] for column in columns)])
        marks = [is_best(line, measure, lines) for measure in measures]
        best.append([False, False, *marks, *[False] * len(columns)])
    return Cells(["method", "seeds", *titles_of(measures, columns)], rows, best)


def as_markdown(runs: Iterable[Run]) -> str:
    """Tables in the Markdown of GitHub and its like."""
    parts = []
    for family, lines in groupby(compare(runs), key=lambda line: line.group.family):
        titles, rows, best = cells_of(list(lines))
        texts = [
            [
                f"**{in_markdown(text)}**" if bold else in_markdown(text)
                for text, bold in zip(row, marks, strict=True)
            ]
            for row, marks in zip(rows, best, strict=True)
        ]
        bars = ["---", *["---:"] * (len(titles) - 1)]
        lines_of_text = [f"| {' | '.join(row)} |" for row in ([*map(in_markdown, titles)], bars, *texts)]
        parts.append("\n".join([f"**{in_markdown(family or 'runs')}**", "", *lines_of_text]))
    return "\n\n".join(parts) + "\n"


def as_latex(runs: Iterable[Run]) -> str:
    """Tables of LaTeX with the rules of the package booktabs."""
    parts = []
    for family, lines in groupby(compare(runs), key=lambda line: line.group.family):
        titles, rows, best = cells_of(list(lines))
        body = [
            " & ".join(
                rf"\textbf{{{in_latex(text)}}}" if bold else in_latex(text)
                for text, bold in zip(row, marks, strict=True)
            )
            for row, marks in zip(rows, best, strict=True)
        ]
        parts.append(
            "\n".join(
                [
                    rf"% {in_latex(family or 'runs')}; \usepackage{{booktabs}}",
                    rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}",
                    r"\toprule",
                    " & ".join(map(in_latex, titles)) + r" \\",
                    r"\midrule",
                    *(rf"{line} \\" for line in body),
                    r"\bottomrule",
                    r"\end{tabular}",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def in_markdown(text: str) -> str:
    """Text that Markdown shows as it is.

    >>> in_markdown("a|b_c*")
    'a\\\\|b\\\\_c\\\\*'
    """
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", printable(text).replace("\n", " "))


def in_latex(text: str) -> str:
    """Text that LaTeX sets as it is.

    >>> in_latex("50 % of x_1")
    '50 \\\\% of x\\\\_1'
    """
    return "".join(LATEX_SIGNS.get(sign, sign) for sign in printable(text).replace("\n", " "))
