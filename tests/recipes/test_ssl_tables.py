"""The paper's tables without labels: every number is a row's, once, and is the one that the paper prints."""

import json
from collections import Counter
from pathlib import Path

import pytest

from samix.recipes import PRETRAININGS, find_pretraining
from samix.recipes.paper import Cell

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT.parent / "shared" / "spec" / "TABLES.json"
COLUMNS: dict[str, tuple[str, ...] | None] = {
    "tab:stl_ssl": None,
    "tab:imagenet_ssl": None,
    "tab:imagenet_ssl_extend": None,
    "tab:imagenet_ssl_vit": None,
    "tab:ablation_loss": None,
    "tab:ablation_mixblock": ("CL",),
}
"""Tables without labels, and which of their columns are; None: all."""


def our_cells() -> list[Cell]:
    return [cell for f in PRETRAININGS.values() for cells in f.cells.values() for cell in cells]


@pytest.fixture(scope="module")
def printed() -> dict[str, dict]:
    """The tables as they were read from the paper's source."""
    if not TABLES.exists():
        pytest.skip(f"the paper's tables are not on this machine ({TABLES})")
    return {table["label"]: table for table in json.loads(TABLES.read_text())["tables"]}


@pytest.mark.parametrize("label", COLUMNS)
def test_value_every_cell_is_found_once_with_the_papers_number(printed, label):
    wanted = {
        (tuple([row["row"]] if isinstance(row["row"], str) else row["row"]), column): number
        for row in printed[label]["rows"]
        for column, number in row["values"].items()
        if number is not None and (COLUMNS[label] is None or column in COLUMNS[label])
    }
    ours = [cell for cell in our_cells() if cell.table == label]
    assert max(Counter((cell.row, cell.column) for cell in ours).values()) == 1
    assert {(cell.row, cell.column): cell.number for cell in ours} == wanted


def test_value_no_table_but_these():
    assert {cell.table for cell in our_cells()} == set(COLUMNS)


@pytest.mark.parametrize("family", [name for name, f in PRETRAININGS.items() if f.cells])
def test_value_every_cell_is_a_row_that_can_be_trained(family):
    """The row's epochs and network are those of the cell's column."""
    networks = {"R18": "resnet18", "R50": "resnet50"}
    for name, cells in PRETRAININGS[family].cells.items():
        full, recipe = find_pretraining(f"{family}/{name}")
        assert full == f"{family}/{name}" and name in PRETRAININGS[family].rows
        for cell in cells:
            for short, network in networks.items():
                assert short not in cell.column or recipe.encoder.name == network
            for epochs in (200, 300, 400, 800):
                assert f"{epochs}ep" not in cell.column or recipe.epochs == epochs
