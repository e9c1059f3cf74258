"""Folders of pictures: root/{train,val}/<class>/<picture>, or any without labels."""

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from samix.data.memory import read_all, spread_positions
from samix.data.packs import UNREADABLE, decode, why_unreadable

ENDINGS = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff", ".gif"}
SMALL = 2 * 2**30
"""Pictures that take at most this many bytes once decoded stay in memory; Tiny-ImageNet takes 1.2 GB."""


# Not Sequence[Tensor]: the type checker of the tests would decode a picture wherever the set is passed on.
class LazyPictures(Sequence):
    """Decodes a picture each time it is asked for."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:  # type: ignore[override]
        return read_picture(self.paths[index])

    def pick(self, chosen: Tensor) -> "LazyPictures":
        """Some of them."""
        return LazyPictures([self.paths[i] for i in chosen.tolist()])

    def decode(self) -> "Tensor | list[Tensor] | LazyPictures":
        """Decodes all if they fit into `SMALL` bytes, judged by a few of them; else stays as it is."""
        probe = [read_size(self.paths[i]) for i in spread_positions(len(self), 16)]
        if len(self) * 3 * sum(w * h for w, h in probe) / len(probe) > SMALL:
            return self
        return read_all(self.__getitem__, len(self))


FolderPart = tuple[LazyPictures, Tensor, tuple[str, ...]]
"""Pictures, labels [N], class names."""


def read_picture(path: Path) -> Tensor:
    """One picture file as uint8 [3, H, W]; an unreadable one is named."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file. Expected a picture.")
    try:
        return decode(path.read_bytes())
    except UNREADABLE as error:
        raise ValueError(
            f"cannot read the picture {path}: {why_unreadable(error)}. Repair or remove it."
        ) from error


def read_folder(root: str | Path) -> dict[str, FolderPart]:
    """The splits train and val (or test) of a folder with one sub-folder per class."""
    root = Path(root)
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not a folder. It should hold train/ and val/.")
    test = next((root / name for name in ("val", "test") if (root / name).is_dir()), root / "val")
    for folder in (root / "train", test):
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{root} has no folder '{folder.name}'. Expected {root}/train/<class>/<picture> "
                f"and {root}/val/<class>/<picture>."
            )
    names = class_names(root / "train")
    if extra := sorted(set(class_names(test)) - set(names)):
        raise ValueError(f"{test} has classes that {root / 'train'} lacks: {', '.join(extra)}.")
    return {"train": read_classes(root / "train", names), "val": read_classes(test, names)}


def read_pictures(root: Path) -> LazyPictures:
    """All pictures anywhere below a folder."""
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not a folder. It should hold pictures.")
    paths = find_pictures(root)
    if not paths:
        raise ValueError(f"{root} has no picture in it or below ({', '.join(sorted(ENDINGS))}).")
    return LazyPictures(paths)


def find_pictures(root: Path) -> list[Path]:
    """The picture files below a folder, sorted; hidden ones, which tools leave behind, are none."""
    named = (path for path in root.rglob("*") if path.suffix.lower() in ENDINGS)
    visible = (path for path in named if not any(p.startswith(".") for p in path.relative_to(root).parts))
    # A link to nowhere is no folder either: it stays, to be refused by name instead of missed.
    return sorted(path for path in visible if not path.is_dir())


def class_names(folder: Path) -> tuple[str, ...]:
    """The names of the class folders, sorted; hidden ones, which tools leave behind, are none."""
    visible = (entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    names = tuple(sorted(entry.name for entry in visible))
    if not names:
        raise ValueError(f"{folder} has no class folders. Expected {folder}/<class>/<picture>.")
    return names


def read_classes(folder: Path, names: tuple[str, ...]) -> FolderPart:
    """All pictures below the class folders, labelled by the position of their class in `names`."""
    paths: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        found = find_pictures(folder / name)
        if not found:
            raise ValueError(f"class folder {folder / name} has no picture ({', '.join(sorted(ENDINGS))}).")
        paths += found
        labels += [label] * len(found)
    return LazyPictures(paths), torch.tensor(labels), names


def read_size(path: Path) -> tuple[int, int]:
    """Width and height from the file's header."""
    try:
        with Image.open(path) as image:
            return image.size
    except UNREADABLE as error:
        raise ValueError(
            f"cannot read the picture {path}: {why_unreadable(error)}. Repair or remove it."
        ) from error
