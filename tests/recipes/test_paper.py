"""The paper's tables: printed lines become cells, and every number is one that the paper prints."""

import pytest

from samix.recipes.paper import Cell, join_cells, read_table

COLUMNS = ("A / R-18", "A / R-50")
LINES = """
Vanilla            70.04  76.83
MoCo.V2 | Mixup        -  70.1
"""


def test_value_lines_become_cells():
    table = read_table("tab:some", COLUMNS, LINES)
    rows = {"plain": "Vanilla", "moco-v2+mixup": "MoCo.V2 | Mixup"}
    first, second = (table.column(column, rows) for column in COLUMNS)
    assert first == {"plain": (Cell("tab:some", ("Vanilla",), "A / R-18", 70.04),)}  # a dash is no cell
    assert second["moco-v2+mixup"] == (Cell("tab:some", ("MoCo.V2", "Mixup"), "A / R-50", 70.1),)
    both = join_cells(first, second)
    assert [cell.number for cell in both["plain"]] == [70.04, 76.83]
    assert len(both["moco-v2+mixup"]) == 1


@pytest.mark.parametrize("lines", ["70.04 76.83", "Vanilla 1 2\nVanilla 3 4"])
def test_error_a_line_needs_a_name_of_its_own(lines):
    with pytest.raises(ValueError, match="tab:some.*needs a name of its own and 2 values"):
        read_table("tab:some", COLUMNS, lines)


def test_error_words_that_a_table_does_not_know():
    table = read_table("tab:some", COLUMNS, LINES)
    with pytest.raises(ValueError, match="no row 'Vanila': MoCo.V2 | Mixup, Vanilla"):
        table.column("A / R-18", {"plain": "Vanila"})
    with pytest.raises(ValueError, match="no column 'B': A / R-18, A / R-50"):
        table.column("B", {})
