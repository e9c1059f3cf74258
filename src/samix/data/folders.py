"""Folders of pictures: root/{train,val}/<class>/<picture>, or any without labels; trees.py: root/<class>/.

With a list `unreadable` a reader is lenient, as pictures of one's own need it: files that cannot be read go
to that list and are left out, or stood in for where this shows in the middle of a run. Without the list, as
for published sets, a damaged copy is refused by name.
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from samix.data.memory import bytes_decoded, read_all, read_readable
from samix.data.packs import UNREADABLE, decode, why_unreadable
from samix.data.paths import Paths

ENDINGS = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff", ".gif"}
SMALL = 2 * 2**30
"""Pictures that take at most this many bytes once decoded stay in memory; Tiny-ImageNet takes 1.2 GB."""
CHECKED = 20_000
"""Up to so many files have their headers checked before anything else; it takes seconds."""
LARGEST = 2**30
"""Bytes of a picture file; nobody's pictures have more."""
NAMED = 3
"""How many unreadable files a warning names."""


# Not Sequence[Tensor]: the type checker of the tests would decode a picture wherever the set is passed on.
class LazyPictures(Sequence):
    """Decodes a picture each time it is asked for.

    In a lenient set, one with a list `unreadable`, the next readable picture of the same class (`labels`)
    stands in for one that cannot be read, so that no loading worker ends a run.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        labels: Sequence[int] = (),
        *,
        short: int | None = None,
        unreadable: list[Path] | None = None,
    ) -> None:
        self.paths = paths if isinstance(paths, Paths) else Paths(paths)
        self.labels, self.short, self.unreadable = labels, short, unreadable

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:  # type: ignore[override]
        try:
            return self.read(index)
        except (ValueError, OSError) as error:
            if self.unreadable is None:
                raise
            return self.stand_in(index, error)

    def read(self, index: int) -> Tensor:
        """The picture itself; one that cannot be read is refused by name."""
        return read_picture(self.paths[index], self.short)

    def stand_in(self, index: int, why: Exception) -> Tensor:
        """The next readable picture of the same class."""
        count, index = len(self), index % len(self)
        for other in ((index + step) % count for step in range(1, count)):
            if self.labels[other] != self.labels[index]:
                continue
            try:
                picture = self.read(other)
            except (ValueError, OSError):
                continue
            warnings.warn(f"{why} Till then {self.paths[other].name} stands in for it.", stacklevel=3)
            return picture
        raise why

    def pick(self, chosen: Tensor) -> "LazyPictures":
        """Some of them."""
        places = chosen.tolist()
        labels = [self.labels[i] for i in places] if self.labels else ()
        paths = self.paths.pick(chosen)
        return LazyPictures(paths, labels, short=self.short, unreadable=self.unreadable)

    def decode(self) -> "Tensor | list[Tensor] | LazyPictures":
        """Decodes all if they fit into `SMALL` bytes, judged by a few of them; else stays as it is."""
        return read_all(self.read, len(self)) if self.fits() else self

    def decode_readable(self) -> "tuple[Tensor | list[Tensor] | LazyPictures, Tensor]":
        """`decode` of a lenient set: what could be decoded, and the positions of it [n]."""
        if not self.fits():
            return self, torch.arange(len(self))
        pictures, failed = read_readable(self.read, len(self))
        assert self.unreadable is not None
        self.unreadable += [self.paths[i] for i in sorted(failed)]
        return pictures, torch.tensor([i for i in range(len(self)) if i not in failed], dtype=torch.long)

    def fits(self) -> bool:
        """Whether all of them, decoded, fit into `SMALL` bytes, judged by a few."""
        return bytes_decoded(lambda i: read_size(self.paths[i]), len(self), self.short) <= SMALL


FolderPart = tuple[LazyPictures, Tensor, tuple[str, ...]]
"""Pictures, labels [N], class names."""


def read_picture(path: Path, short: int | None = None) -> Tensor:
    """One picture file as uint8 [3, H, W], its shorter side at most `short`; an unreadable one is named."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file. Expected a picture.")
    try:
        check_regular(path)
        return decode(path.read_bytes(), short)
    except UNREADABLE as error:
        raise ValueError(
            f"cannot read the picture {path}: {why_unreadable(error)}. Repair or remove it."
        ) from error


def read_folder(
    root: str | Path,
    *,
    test: str = "val",
    short: int | None = None,
    unreadable: list[Path] | None = None,
) -> dict[str, FolderPart]:
    """The splits train and val of a folder with one sub-folder per class.

    What is called val in the answer are the pictures to test on: those of `test`, or where there is no such
    folder of the other one, val or test.
    """
    root = Path(root)
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not a folder. It should hold train/ and val/.")
    names = dict.fromkeys((test, "val", "test"))
    tested = next((root / name for name in names if (root / name).is_dir()), root / "val")
    for folder in (root / "train", tested):
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{root} has no folder '{folder.name}'. Expected {root}/train/<class>/<picture> "
                f"and {root}/val/<class>/<picture>."
            )
    classes = class_names(root / "train")
    if extra := sorted(set(class_names(tested)) - set(classes)):
        raise ValueError(f"{tested} has classes that {root / 'train'} lacks: {', '.join(extra)}.")
    return {
        part: read_classes(folder, classes, short=short, unreadable=unreadable)
        for part, folder in (("train", root / "train"), ("val", tested))
    }


def read_pictures(root: Path, unreadable: list[Path]) -> LazyPictures:
    """All pictures anywhere below a folder; files that only look like pictures go to `unreadable`."""
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not a folder. It should hold pictures.")
    found = find_pictures(root)
    if not found:
        raise ValueError(f"{root} has no picture in it or below ({', '.join(sorted(ENDINGS))}).")
    readable = keep_readable(found, unreadable)
    if not readable:
        raise ValueError(f"{root} has {len(found)} picture files, none of which can be read.")
    return LazyPictures(readable, [0] * len(readable), unreadable=unreadable)


def find_pictures(root: Path) -> list[Path]:
    """The picture files below a folder, sorted; hidden ones, which tools leave behind, are none."""
    return [Path(path) for path in list_pictures(root)]


def list_pictures(folder: str | Path) -> Iterator[str]:
    """The same as text, in the same order: a folder's entries by name, sub-folders at their place.

    Asks the disk once per folder and not once per file, which takes seconds for a million of them.
    """
    try:
        with os.scandir(folder) as entries:
            visible = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
    except (PermissionError, FileNotFoundError, NotADirectoryError):  # lost+found, for example; or no folder
        return
    for entry in visible:
        if entry.is_dir(follow_symlinks=False):
            yield from list_pictures(entry.path)
        # A link to nowhere is no folder either: it stays, to be refused by name instead of missed.
        elif os.path.splitext(entry.name)[1].lower() in ENDINGS and not entry.is_dir():
            yield entry.path


def class_names(folder: Path) -> tuple[str, ...]:
    """The names of the class folders, sorted; hidden ones, which tools leave behind, are none."""
    visible = (entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    names = tuple(sorted(entry.name for entry in visible))
    if not names:
        raise ValueError(f"{folder} has no class folders. Expected {folder}/<class>/<picture>.")
    return names


def read_classes(
    folder: Path,
    names: tuple[str, ...],
    *,
    short: int | None = None,
    unreadable: list[Path] | None = None,
) -> FolderPart:
    """All pictures below the class folders, labelled by the position of their class in `names`."""
    found = [list(list_pictures(folder / name)) for name in names]
    for name, paths in zip(names, found, strict=True):
        if not paths:
            raise ValueError(f"class folder {folder / name} has no picture ({', '.join(sorted(ENDINGS))}).")
    if unreadable is not None and sum(map(len, found)) <= CHECKED:
        readable = set(keep_readable([Path(path) for paths in found for path in paths], unreadable))
        found = [[path for path in paths if Path(path) in readable] for paths in found]
        for name, paths in zip(names, found, strict=True):
            if not paths:
                raise ValueError(f"class folder {folder / name} has no picture that can be read.")
    labels = [label for label, paths in enumerate(found) for _ in paths]
    whole = Paths(path for paths in found for path in paths)
    return LazyPictures(whole, labels, short=short, unreadable=unreadable), torch.tensor(labels), names


def keep_readable(paths: list[Path], unreadable: list[Path]) -> list[Path]:
    """The files whose headers are those of pictures; the others go to `unreadable`.

    More than `CHECKED` files are not looked at: what is wrong with them shows when they are decoded.
    """
    if len(paths) > CHECKED:
        return paths
    with ThreadPoolExecutor() as pool:
        good = list(pool.map(has_header, paths))
    unreadable += [path for path, fine in zip(paths, good, strict=True) if not fine]
    return [path for path, fine in zip(paths, good, strict=True) if fine]


def warn_of_unreadable(paths: list[Path]) -> None:
    """One sentence for all files that are left out."""
    names = ", ".join(str(path) for path in paths[:NAMED])
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    count = "1 picture file" if len(paths) == 1 else f"{len(paths)} picture files"
    warnings.warn(f"left out {count} that cannot be read: {names}{more}.", stacklevel=2)


def has_header(path: Path) -> bool:
    """Whether a file begins like a picture that Pillow can read and is not too large for it."""
    try:
        read_size(path)
    except ValueError:
        return False
    return True


def check_regular(path: Path) -> None:
    """Refuses what is no file on a disk: to read from a pipe or a device could take for ever."""
    if path.exists() and not path.is_file():
        raise OSError("it is no regular file")
    if path.stat().st_size > LARGEST:
        raise OSError(f"it has more than {LARGEST} bytes")


def read_size(path: Path) -> tuple[int, int]:
    """Width and height from the file's header."""
    try:
        check_regular(path)
        with Image.open(path) as image:
            return image.size
    except UNREADABLE as error:
        raise ValueError(
            f"cannot read the picture {path}: {why_unreadable(error)}. Repair or remove it."
        ) from error
