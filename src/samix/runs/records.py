"""What a run tells of itself: config.yaml and run.json first, rows of metrics.csv, then summary.json."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import yaml

from samix.runs import schema
from samix.runs.files import CONFIG, DESCRIPTION, KNN, LINEAR, METRICS, START, SUMMARY, write_text
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


class PaperNumber(TypedDict):
    """One number of the paper's tables, as run.json holds it."""

    table: str
    row: tuple[str, ...]
    column: str
    number: float


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
    paper: tuple[PaperNumber, ...] | None = None
    """What the paper's tables print for this recipe, if they do."""


def begin_run(folder: Path, settings: dict[str, Any], start: Start) -> None:
    """Makes the folder that of a run with steps to train: its settings, its start, and no results."""
    for name in (SUMMARY, KNN, LINEAR):  # first: the summary would call the run finished
        (folder / name).unlink(missing_ok=True)
    told = {name: value for name, value in start._asdict().items() if value is not None}
    write_text(folder / START, json.dumps(told, indent=2) + "\n")
    write_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False))


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a run, which must at least say how it mixed; old names are replaced by today's."""
    settings = read_settings(path)
    if not isinstance(settings.get("mixup"), dict) or "name" not in settings["mixup"]:
        raise ValueError(f"{path} does not describe a run: it has no mixup.name.")
    schema.check(path, settings, schema.SETTINGS, needed=("mixup",))
    for group, known in schema.IN_SETTINGS.items():
        schema.check(f"{path}: {group}", settings.get(group) or {}, known)
    return settings


def read_settings(path: Path) -> dict[str, Any]:
    """Settings of a YAML file by name, perhaps not all that a run has; old names are replaced by today's."""
    values = schema.read_yaml(path)
    values = {} if values is None else values
    if not schema.is_group(values):
        raise ValueError(f"{path} must hold fields of a recipe by name, got {schema.shorten(values)}.")
    try:
        return modernise(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def planned_epochs(folder: Path) -> int | None:
    """How many epochs the folder's settings ask for, None where they do not say it."""
    return read_config(folder / CONFIG).get("epochs") if (folder / CONFIG).is_file() else None


SCHEMAS: dict[str, schema.Schema] = {
    START: schema.START,
    SUMMARY: schema.SUMMARY,
    DESCRIPTION: schema.DESCRIPTION,
    KNN: schema.SCORES,
    LINEAR: schema.SCORES,
}
"""What the JSON files of a run folder may hold."""


def read_record(path: Path) -> dict[str, Any] | None:
    """What a JSON file says of a run, None where there is no such file."""
    if not path.is_file():
        return None
    return schema.check(path, schema.read_json(path), SCHEMAS.get(path.name, {}))


def write_summary(folder: Path, summary: Summary) -> None:
    """summary.json, whose presence says that the run is finished."""
    write_text(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")


def write_metrics(folder: Path, rows: list[Row]) -> None:
    """All rows so far, atomically; further heads get columns of their own."""
    extra = sorted({name for row in rows for name in row} - set(COLUMNS))
    write_text(folder / METRICS, rows_as_csv(rows, [*COLUMNS, *extra], exact))


def exact(value: int | float) -> str:
    """A number in the fewest digits that give it back: a resumed run sums up what it measured before."""
    short = format(value, ".6g")
    return short if float(short) == value else repr(float(value))


def rows_as_csv(rows: list[Row], columns: list[str], number: Callable[[float], str]) -> str:
    """Rows of numbers as CSV, each number as `number` writes it, missing ones as empty cells."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: number(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def read_metrics(
    folder: Path, last_epoch: int | None = None, needed: tuple[str, ...] = ("epoch",)
) -> list[Row]:
    """The rows up to `last_epoch`: later ones belong to work that a crash undid."""
    path = folder / METRICS
    rows = read_rows(path, needed) if path.is_file() else []
    return [row for row in rows if last_epoch is None or row["epoch"] <= last_epoch]


def read_rows(path: Path, needed: tuple[str, ...] = ()) -> list[Row]:
    """Rows of numbers by column name, empty cells left out; a cut last line is left out too.

    No row may lack the `needed` columns.
    """
    text = schema.read_text(path)
    try:
        # Without its line end nobody knows whether the last number is whole.
        header, *lines = list(csv.reader(text[: text.rfind("\n") + 1].splitlines())) or [[]]
    except csv.Error as error:
        raise ValueError(f"{path} is not readable CSV: {error}.") from error
    rows = []
    for number, cells in enumerate(lines, start=2):
        try:
            rows.append({name: float(cell) for name, cell in zip(header, cells, strict=True) if cell})
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}.") from error
        if missing := [name for name in needed if name not in rows[-1]]:
            raise ValueError(f"{path}, line {number}: there is no {missing[0]}.")
    return rows
