"""Mixed pictures of a run, and how much of their objects survives: samples.npz and retention.csv."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from samix.core.archives import read_arrays
from samix.runs.files import RETENTION, SAMPLES, write_atomically, write_text
from samix.runs.records import Row, read_rows, rows_as_csv


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


def save_samples(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes arrays by the names of `Samples`; a run that mixes nothing has neither masks nor mixtures."""

    def write(path: Path) -> None:
        with path.open("wb") as handle:
            np.savez_compressed(handle, **arrays)  # type: ignore[arg-type]

    write_atomically(folder / SAMPLES, write)


def read_samples(folder: Path) -> Samples | None:
    """The mixed pictures of a run, None where it has not drawn any."""
    path = Path(folder) / SAMPLES
    if not path.is_file():
        return None
    try:
        found = read_arrays(path, Samples._fields)
        samples = Samples(**found) if {"masks", "mixed"} & set(found) else unmixed(**found)
        check_samples(samples)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path} does not hold mixed pictures: {error}.") from error
    return samples


def check_samples(samples: Samples) -> None:
    """Refuses arrays whose shapes or kinds do not fit each other."""
    pairs, _, side, _ = samples.first.shape
    count = len(samples.lams)
    shapes = {
        "first": (pairs, 3, side, side),
        "partner": (pairs, 3, side, side),
        "lams": (count,),
        "masks": (count, pairs, 1, side, side),
        "mixed": (count, pairs, 3, side, side),
    }
    for name, shape in shapes.items():
        array = getattr(samples, name)
        if array.shape != shape or array.dtype.kind not in ("u" if shape[-3:-2] == (3,) else "fiu"):
            raise ValueError(f"{name} must be {list(shape)}, got {array.dtype} {list(array.shape)}")
    for name in ("content", "attention"):
        array = getattr(samples, name)
        if array is not None and (array.ndim != 3 or len(array) != pairs or array.dtype.kind not in "fiu"):
            raise ValueError(f"{name} must be a map per pair, got {array.dtype} {list(array.shape)}")


def unmixed(first: np.ndarray, partner: np.ndarray, lams: np.ndarray) -> Samples:
    """The pictures of a plain run, which mixes them at no lam."""
    masks = np.ones((0, len(first), 1, *first.shape[2:]), dtype=np.float32)
    return Samples(first, partner, lams[:0], masks, np.zeros((0, *first.shape), dtype=np.uint8))


def save_retention(folder: Path, rows: list[Row]) -> None:
    """Writes how much of the objects survives, a row per lam."""
    write_text(folder / RETENTION, rows_as_csv(rows, list(rows[0]), "{:.4f}".format))


def read_retention(folder: Path) -> list[Row] | None:
    """How much of the objects survives at each lam, None where the true masks are not known."""
    path = Path(folder) / RETENTION
    return read_rows(path, needed=("lam",)) if path.is_file() else None
