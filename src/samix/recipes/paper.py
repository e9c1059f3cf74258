"""The paper's tables: their numbers as they are printed, and which recipe makes which.

A table is written in the file of its recipes as the paper prints it, a row a line:

>>> table = read_table("tab:some", ("A / R-18", "A / R-50"), '''
... Vanilla           70.04  76.83
... MoCo.V2 | Mixup   70.1   -
... ''')
>>> table.column("A / R-18", {"plain": "Vanilla"})
{'plain': (Cell(table='tab:some', row=('Vanilla',), column='A / R-18', number=70.04),)}
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias


class Cell(NamedTuple):
    """One number of one table."""

    table: str
    """The table's label in the paper."""
    row: tuple[str, ...]
    """What stands in the row's first columns."""
    column: str
    number: float


Cells: TypeAlias = Mapping[str, tuple[Cell, ...]]
"""What the rows of a family reproduce, by their names."""
NO_CELLS: Cells = MappingProxyType({})


class Table(NamedTuple):
    """A table of the paper, without its dashes."""

    label: str
    columns: tuple[str, ...]
    numbers: Mapping[tuple[str, str], float]
    """By row, as it is written here, and column."""

    def column(self, column: str, rows: Mapping[str, str]) -> dict[str, tuple[Cell, ...]]:
        """The cells of a column; `rows` tells for each recipe's row which row of the table it is.

        Rows that the column has no number for are left out; a word that the table does not know is an error.
        """
        known = {row for row, _ in self.numbers}
        for word in rows.values():
            if word not in known:
                raise ValueError(f"{self.label} has no row {word!r}: {', '.join(sorted(known))}.")
        if column not in self.columns:
            raise ValueError(f"{self.label} has no column {column!r}: {', '.join(self.columns)}.")
        return {
            name: (Cell(self.label, split_row(row), column, self.numbers[row, column]),)
            for name, row in rows.items()
            if (row, column) in self.numbers
        }


def read_table(label: str, columns: tuple[str, ...], text: str) -> Table:
    """The table from its printed lines: a name of any words, then a number or a dash for each column."""
    numbers: dict[tuple[str, str], float] = {}
    for line in text.strip().splitlines():
        words = line.split()
        name, values = " ".join(words[: -len(columns)]), words[-len(columns) :]
        if not name or (name, columns[0]) in numbers:
            raise ValueError(f"{label}: the line {line!r} needs a name of its own and {len(columns)} values.")
        for column, value in zip(columns, values, strict=True):
            if value != "-":
                numbers[name, column] = float(value)
    return Table(label, columns, numbers)


def split_row(row: str) -> tuple[str, ...]:
    """'MoCo.V2 | Mixup' -> ('MoCo.V2', 'Mixup')."""
    return tuple(part.strip() for part in row.split("|"))


def join_cells(*parts: Cells) -> dict[str, tuple[Cell, ...]]:
    """The cells of several columns together, for families whose rows stand in more than one."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: tuple(cell for part in parts for cell in part.get(name, ())) for name in names}


LABELLED: Mapping[str, str] = MappingProxyType(
    {
        "plain": "Vanilla",
        "mixup": "Mixup",
        "cutmix": "CutMix",
        "manifoldmix": "ManifoldMix",
        "saliencymix": "SaliencyMix",
        "fmix": "FMix",
        "puzzlemix": "PuzzleMix",
        "resizemix": "ResizeMix",
        "automix": "AutoMix",
        "samix": "SAMix",
    }
)
"""Rows of the tables with labels, by the names of ours."""
WITH_FROZEN: Mapping[str, str] = MappingProxyType({**LABELLED, "samix-p": "SAMix^P"})
"""The same where a pre-trained Mixer stands among them."""
