"""Folders of pictures: root/{train,val}/<class>/<picture>, any without labels, Tiny-ImageNet's layout."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from samix.data.packs import UNREADABLE, decode, reason, stacked

ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff", ".gif"}
SMALL = 512 * 2**20
"""Folders whose decoded pictures fit into so many bytes are kept in memory."""

FolderPart = tuple[Sequence[Tensor] | Tensor, Tensor, tuple[str, ...]]


class LazyPictures(Sequence[Tensor]):
    """Decodes a picture each time it is asked for; for sets that do not fit into memory."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:  # type: ignore[override]
        return read_picture(self.paths[index])


def read_picture(path: Path) -> Tensor:
    """One picture file as uint8 [3, H, W]; an unreadable one is named."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file. Expected a picture.")
    try:
        return decode(path.read_bytes())
    except UNREADABLE as error:
        raise ValueError(f"cannot read the picture {path}: {reason(error)}. Repair or remove it.") from error


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


def read_pictures(root: Path) -> Sequence[Tensor] | Tensor:
    """All pictures anywhere below a folder."""
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not a folder. It should hold pictures.")
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in ENDINGS)
    if not paths:
        raise ValueError(f"{root} has no picture in it or below ({', '.join(sorted(ENDINGS))}).")
    return in_memory_if_small(paths)


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
        found = sorted(p for p in (folder / name).rglob("*") if p.suffix.lower() in ENDINGS)
        if not found:
            raise ValueError(f"class folder {folder / name} has no picture ({', '.join(sorted(ENDINGS))}).")
        paths += found
        labels += [label] * len(found)
    return in_memory_if_small(paths), torch.tensor(labels), names


def in_memory_if_small(paths: list[Path]) -> Sequence[Tensor] | Tensor:
    """Decoded pictures where they fit into `SMALL` bytes, judged by the first few; else lazy ones."""
    probe = [read_size(path) for path in paths[:: max(len(paths) // 16, 1)]]
    if len(paths) * 3 * sum(w * h for w, h in probe) / len(probe) > SMALL:
        return LazyPictures(paths)
    with ThreadPoolExecutor() as pool:
        return stacked(list(pool.map(read_picture, paths)))


def read_size(path: Path) -> tuple[int, int]:
    """Width and height from the file's header."""
    try:
        with Image.open(path) as image:
            return image.size
    except UNREADABLE as error:
        raise ValueError(f"cannot read the picture {path}: {reason(error)}. Repair or remove it.") from error


def read_tiny_imagenet(root: Path) -> dict[str, FolderPart]:
    """The official Tiny-ImageNet layout: val pictures in one folder, labels in val_annotations.txt."""
    names = class_names(root / "train")
    table = [line.split("\t") for line in (root / "val" / "val_annotations.txt").read_text().splitlines()]
    paths = [root / "val" / "images" / row[0] for row in table]
    labels = torch.tensor([names.index(row[1]) for row in table])
    return {
        "train": read_classes(root / "train", names),
        "val": (in_memory_if_small(paths), labels, names),
    }
