"""Sets whose pictures stand in a list with their labels: what CUB, Aircraft, Places and iNaturalist share.

Lists may come from anybody: they name pictures below the set's folder and nothing else. Pictures are decoded
when they are asked for; whether all files are there, `samix data` checks.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import torch

from samix.data.folders import FolderPart, LazyPictures
from samix.data.paths import Paths

AGAIN = "Copy it again."


class Line(NamedTuple):
    """A line of a list: a word, the rest, and where it stands."""

    first: str
    rest: str
    place: str


def read_lines(path: Path, what: str, *, last: bool = False) -> Iterator[Line]:
    """The lines of a list, blank ones left out, cut at the first blank or at the `last`; `what` they hold."""
    empty = True
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            if not (text := text.strip()):
                continue
            empty = False
            first, *rest = text.rsplit(None, 1) if last else text.split(None, 1)
            place = f"line {number} of {path}"
            if not rest:
                raise ValueError(f"{place} should be {what}, got {text!r}. {AGAIN}")
            yield Line(first, rest[0], place)
    if empty:
        raise ValueError(f"{path} is empty. Expected lines: {what}. {AGAIN}")


def as_number(text: str, least: int, most: int, place: str) -> int:
    """A whole number in [least, most] from a line."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"{place} has {text!r}, not a whole number from {least} to {most}. {AGAIN}")
    return int(text)


def check_inside(name: str, place: str) -> str:
    """The name of a file below the set's folder; what leads out of it is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{place} has {name!r}, which leads out of the set's folder. {AGAIN}")
    return name


def as_part(
    root: Path, rows: Iterable[tuple[str, int]], classes: tuple[str, ...], short: int | None
) -> FolderPart:
    """Pictures below `root` by their names there, and their labels; read when they are asked for."""
    labels: list[int] = []

    def names() -> Iterator[str]:
        for name, label in rows:
            labels.append(label)
            yield f"{root}/{name}"

    paths = Paths(names())
    return LazyPictures(paths, labels, short=short), torch.tensor(labels), classes
