"""What a copy of a data set holds, and what is wrong with it: numbers, classes, files that cannot be read."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from samix.data.folders import LazyPictures
from samix.data.official import Official
from samix.data.sets import ImageSet, Split, Undecoded

NAMED = 5
"""How many unreadable pictures, or empty classes, are named."""
CHUNK = 512
"""Pictures that are handed to the threads at a time."""

Size = tuple[int, int]
"""Height and width."""


class Found(NamedTuple):
    """What one part of a set holds."""

    pictures: int
    classes: int
    """Classes that the part knows."""
    empty: list[str]
    """Classes without a picture, the first few of them."""
    fewest: int
    """Pictures of the smallest class."""
    most: int
    """Pictures of the largest class."""
    unreadable: int
    reasons: list[str]
    """Why the first few cannot be read."""
    height: float | None
    """Mean of the pictures that were looked at; None if none was."""
    width: float | None


def check_set(images: ImageSet, *, quick: bool = False, tell: Callable[[], None] = lambda: None) -> Found:
    """Looks at every picture of a part; `quick`: only whether its file is there. `tell` hears of each."""
    counts = images.labels.bincount(minlength=len(images.classes)).tolist()
    total, sizes, failures = [0, 0], 0, []
    for result in look_at(images, quick):
        tell()
        if isinstance(result, Exception):
            failures.append(str(result))
        elif result is not None:
            total, sizes = [total[0] + result[0], total[1] + result[1]], sizes + 1
    empty = [name for name, count in zip(images.classes, counts, strict=True) if not count]
    height, width = (round(side / sizes, 1) if sizes else None for side in total)
    return Found(
        len(images.labels), len(counts), empty[:NAMED], min(counts), max(counts),
        len(failures), failures[:NAMED], height, width,
    )  # fmt: skip


def look_at(images: ImageSet, quick: bool) -> Iterator[Size | Exception | None]:
    """The size of every picture, or why it cannot be read, in order; None: it was not looked at."""
    pictures = images.pictures
    if not isinstance(pictures, Undecoded):
        yield from (tuple(picture.shape[-2:]) for picture in pictures)
        return
    look = partial(find_file if quick else size_of, pictures)
    with ThreadPoolExecutor() as pool:
        for first in range(0, len(pictures), CHUNK):
            yield from pool.map(look, range(first, min(first + CHUNK, len(pictures))))


def size_of(pictures: Undecoded, index: int) -> Size | Exception:
    """The size of a picture, which takes decoding it, or why it cannot be read."""
    try:
        picture: Tensor = pictures.read(index)
    except (ValueError, OSError) as error:
        return error
    return picture.shape[-2], picture.shape[-1]


def find_file(pictures: Undecoded, index: int) -> Exception | None:
    """What is wrong with a picture's file without reading it; packs and shards have no files to miss."""
    if not isinstance(pictures, LazyPictures):
        return None
    path = pictures.paths[index]
    try:
        return None if path.stat().st_size else ValueError(f"{path} is empty.")
    except OSError as error:
        return FileNotFoundError(f"{path} cannot be found: {error.strerror}.")


def parts_of(split: Split) -> dict[str, ImageSet]:
    """The parts of a set that are to be looked at; without labels there is nothing but train."""
    if split.known is not None:
        return {"train": split.train, "labelled": split.known, "test": split.test}
    if len(split.train.classes) < 2:
        return {"train": split.train}
    return {"train": split.train, "test": split.test}


def find_problems(
    found: dict[str, Found], official: Official | None, left_out: Sequence[Path] = ()
) -> list[str]:
    """Everything that is not as it should be, a sentence each; `left_out`: files that its reader left out."""
    problems = []
    if official is not None:
        classes = found.get("labelled", found["train"]).classes
        rows = [
            ("training pictures", found["train"].pictures, official.train),
            ("classes", classes, official.classes),
        ]
        if "test" in found:
            rows.append(("test pictures", found["test"].pictures, official.test))
        problems += [f"{has:,} {what}, the set has {should:,}" for what, has, should in rows if has != should]
    for part, each in found.items():
        if each.empty:
            problems.append(f"{part}: classes without a picture: {', '.join(each.empty)}{dots(each.empty)}")
        if each.unreadable:
            problems.append(f"{part}: {each.unreadable:,} pictures that cannot be read")
            problems += [f"{part}: {reason}" for reason in each.reasons]
    if left_out:
        problems.append(f"{len(left_out):,} files that only look like pictures")
        problems += [f"{path} is no picture in a known format." for path in left_out[:NAMED]]
    return problems


def dots(named: list[str]) -> str:
    """ ", ..." where not all may be named."""
    return ", ..." if len(named) == NAMED else ""
