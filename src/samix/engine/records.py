"""The files of a run folder that tell about it, by name, and how they are read."""

import csv
import json
from pathlib import Path
from typing import Any

CONFIG = "config.yaml"
START = "run.json"
METRICS = "metrics.csv"
SUMMARY = "summary.json"

Row = dict[str, float]


def read_record(path: Path) -> dict[str, Any] | None:
    """What a JSON file says of a run, None where there is no such file."""
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is not readable JSON: {error}. Remove it and resume the run.") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path} must hold one JSON object, got {type(record).__name__}.")
    return record


def read_rows(path: Path) -> list[Row]:
    """Rows of numbers by column name, empty cells left out; a cut last line is left out too."""
    text = path.read_text()
    # Without its line end nobody knows whether the last number is whole.
    header, *lines = list(csv.reader(text[: text.rfind("\n") + 1].splitlines())) or [[]]
    rows = []
    for number, cells in enumerate(lines, start=2):
        try:
            rows.append({name: float(cell) for name, cell in zip(header, cells, strict=True) if cell})
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}.") from error
    return rows
