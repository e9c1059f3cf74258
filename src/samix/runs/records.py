"""What a run tells of itself: config.yaml and run.json first, rows of metrics.csv, then summary.json."""

import csv
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from samix.runs.files import CONFIG, METRICS, START, SUMMARY, write_text
from samix.runs.settings import modernise

Row = dict[str, float]
"""What an epoch measured, by column."""
Summary = dict[str, Any]
"""What a finished run came to."""

COLUMNS = (
    "epoch", "seconds", "loss", "images_per_s",
    "mixer", "local", "globally", "mask", "gamma", "gap", "deviation",
    "top1", "top5", "ece", "knn",
)  # fmt: skip


class Start(NamedTuple):
    """What a run is, as far as its settings do not say it."""

    name: str
    """The recipe's."""
    command: str
    commit: str
    """Of samix when the run started; 'a+b' of a run that went on at another one."""
    train_pictures: int
    test_pictures: int
    mean: tuple[float, ...] | None = None
    """How pictures are normalised where the encoder's first weights decide it and not the data."""
    std: tuple[float, ...] | None = None


def begin_run(folder: Path, settings: dict[str, Any], start: Start) -> None:
    """Makes the folder that of a run with steps to train: its settings, its start, and no summary."""
    (folder / SUMMARY).unlink(missing_ok=True)  # first: it would call the run finished
    told = {name: value for name, value in start._asdict().items() if value is not None}
    write_text(folder / START, json.dumps(told, indent=2) + "\n")
    write_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False))


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a run, which must at least say how it mixed; old names are replaced by today's."""
    try:
        config = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not readable YAML: {error}.") from error
    mixup = config.get("mixup") if isinstance(config, dict) else None
    if not isinstance(mixup, dict) or "name" not in mixup:
        raise ValueError(f"{path} does not describe a run: it has no mixup.name.")
    return modernise(config)


def planned_epochs(folder: Path) -> int | None:
    """How many epochs the folder's settings ask for, None where they do not say it."""
    return read_config(folder / CONFIG).get("epochs") if (folder / CONFIG).is_file() else None


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


def write_summary(folder: Path, summary: Summary) -> None:
    """summary.json, whose presence says that the run is finished."""
    write_text(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")


def write_metrics(folder: Path, rows: list[Row]) -> None:
    """All rows so far, atomically; further heads get columns of their own."""
    extra = sorted({name for row in rows for name in row} - set(COLUMNS))
    write_text(folder / METRICS, rows_as_csv(rows, [*COLUMNS, *extra], ".6g"))


def rows_as_csv(rows: list[Row], columns: list[str], number: str) -> str:
    """Rows of numbers as CSV, each number in the given format, missing ones as empty cells."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: format(value, number) for name, value in row.items()} for row in rows)
    return text.getvalue()


def read_metrics(folder: Path, last_epoch: int | None = None) -> list[Row]:
    """The rows up to `last_epoch`: later ones belong to work that a crash undid."""
    path = folder / METRICS
    rows = read_rows(path) if path.is_file() else []
    return [row for row in rows if last_epoch is None or row["epoch"] <= last_epoch]


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
