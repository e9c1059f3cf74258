"""Run folders as values: what a run was told, what it measured, what its mixed images look like.

Everything in the report comes from these files; no model is built or loaded.
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from samix.engine.records import CONFIG, METRICS, START, SUMMARY, Row, read_record, read_rows

SAMPLES = "samples.npz"
RETENTION = "retention.csv"


class Samples(NamedTuple):
    """Pairs of pictures mixed over a sweep of lam (N pairs, L lams, S pixels a side)."""

    first: np.ndarray
    """[N, 3, S, S] uint8."""
    partner: np.ndarray
    """[N, 3, S, S] uint8."""
    lams: np.ndarray
    """[L]: the weight of the first image that was asked for."""
    masks: np.ndarray
    """[L, N, 1, S, S]: the weight of the first image at every pixel."""
    mixed: np.ndarray
    """[L, N, 3, S, S] uint8."""
    content: np.ndarray | None = None
    """[N, h, w]: the Mixer's content map of the first image at lam 0.5; learned policies only."""
    attention: np.ndarray | None = None
    """[N, h, w]: where the Mixer's attention goes at lam 0.5, mean over the queries; learned only."""


class Run(NamedTuple):
    """One run folder."""

    path: Path
    config: dict[str, Any]
    rows: list[Row]
    """One per epoch; a value that was not measured is not in its row."""
    summary: dict[str, Any] | None
    """None until the run is finished."""
    start: dict[str, Any] | None = None
    """Name, command and commit with which it started; None of older versions."""

    @property
    def recipe(self) -> str:
        """The recipe's name; a run that does not say it is named after its folder."""
        if self.summary and "recipe" in self.summary:
            return str(self.summary["recipe"])
        if self.start and "name" in self.start:
            return str(self.start["name"])
        parent = self.path.resolve().parent
        return f"{parent.parent.name}/{parent.name}"

    @property
    def mixup(self) -> str:
        """The policy's name."""
        return str(self.config["mixup"]["name"])

    @property
    def seed(self) -> int:
        """The seed of everything random in the run."""
        return int(self.config.get("seed", 0))

    def series(self, column: str) -> dict[float, float]:
        """One column of the metrics by epoch, where it was measured."""
        return {row["epoch"]: row[column] for row in self.rows if column in row and "epoch" in row}


def read_run(path: Path) -> Run:
    """The run in the folder `path`, finished or not."""
    path = Path(path)
    if not (path / CONFIG).is_file():
        raise FileNotFoundError(f"{path} is not a run folder: it has no {CONFIG}.")
    summary, start = (read_record(path / name) for name in (SUMMARY, START))
    rows = read_rows(path / METRICS) if (path / METRICS).is_file() else []
    return Run(path, read_config(path / CONFIG), rows, summary, start)


def find_runs(paths: Iterable[Path]) -> list[Run]:
    """All runs in `paths`, each a run folder or a folder somewhere above run folders; no run twice."""
    folders: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist. Give a run folder, or a folder above some.")
        found = {path} if (path / CONFIG).is_file() else run_folders(path)
        if not found:
            raise FileNotFoundError(
                f"no run in {path}: no {CONFIG} in it or below it describes one. "
                "Start one: samix train RECIPE."
            )
        folders |= {folder.resolve(): folder for folder in found}
    return sorted(map(read_run, folders.values()), key=lambda run: (run.recipe, run.seed, str(run.path)))


def run_folders(path: Path) -> set[Path]:
    """The run folders below `path`.

    Other programs have a config.yaml too; a tracker even writes its own inside a run.
    """
    found: set[Path] = set()
    for config in sorted(path.rglob(CONFIG), key=lambda each: len(each.parts)):  # outer folders first
        if not config.is_file() or not found.isdisjoint(config.parents):
            continue
        try:
            read_config(config)
        except ValueError:
            continue
        found.add(config.parent)
    return found


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a run, which must at least say how it mixed."""
    try:
        config = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not readable YAML: {error}.") from error
    mixup = config.get("mixup") if isinstance(config, dict) else None
    if not isinstance(mixup, dict) or "name" not in mixup:
        raise ValueError(f"{path} does not describe a run: it has no mixup.name.")
    return config


def read_samples(folder: Path) -> Samples | None:
    """The mixed pictures of a run, None where it has not drawn any."""
    path = Path(folder) / SAMPLES
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in Samples._fields if name in arrays.files}
        return Samples(**found) if {"masks", "mixed"} & set(found) else unmixed(**found)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} does not hold mixed pictures: {error}.") from error


def unmixed(first: np.ndarray, partner: np.ndarray, lams: np.ndarray) -> Samples:
    """The pictures of a plain run, which mixes them at no lam."""
    masks = np.ones((0, len(first), 1, *first.shape[2:]), dtype=np.float32)
    return Samples(first, partner, lams[:0], masks, np.zeros((0, *first.shape), dtype=np.uint8))


def read_retention(folder: Path) -> list[Row] | None:
    """How much of the objects survives at each lam, None where the true masks are not known."""
    path = Path(folder) / RETENTION
    return read_rows(path) if path.is_file() else None
