"""Tiny-ImageNet's official folder: training pictures by class, test pictures in one folder with a list."""

from pathlib import Path

import torch

from samix.data.folders import FolderPart, LazyPictures, class_names, read_classes

FOLDER = "tiny-imagenet-200"
SOURCE = "tiny-imagenet-200.zip from cs231n.stanford.edu"
AGAIN = f"Unpack {SOURCE} again."


def read_tiny_imagenet(root: Path) -> dict[str, FolderPart]:
    """The splits train and val; the labels of val are in val/val_annotations.txt."""
    train, annotations = root / "train", root / "val" / "val_annotations.txt"
    for path in (train, annotations):
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is missing. Expected train/<class>/images/<picture>, val/images/<picture> "
                f"and val/val_annotations.txt in {root}. {AGAIN}"
            )
    names = class_names(train)
    paths, labels = zip(*read_annotations(annotations, names), strict=True)
    val = (LazyPictures(list(paths)), torch.tensor(labels), names)
    return {"train": read_classes(train, names), "val": val}


def read_annotations(path: Path, names: tuple[str, ...]) -> list[tuple[Path, int]]:
    """Every listed test picture with the position of its class in `names`."""
    lines = enumerate(path.read_text().splitlines(), start=1)
    rows = [read_row(line, names, path, number) for number, line in lines if line.strip()]
    if not rows:
        raise ValueError(f"{path} lists no picture. {AGAIN}")
    return rows


def read_row(line: str, names: tuple[str, ...], path: Path, number: int) -> tuple[Path, int]:
    """Picture and label of one line: the picture's name, its class and a box, between tabs."""
    place = f"line {number} of {path}"
    name, *more = (column.strip() for column in line.split("\t"))
    if not more:
        raise ValueError(f"{place} should be a picture, a tab and a class, got {line!r}. {AGAIN}")
    if more[0] not in names:
        raise ValueError(f"{place} has the class {more[0]!r}, for which train/ has no folder. {AGAIN}")
    picture = path.parent / "images" / name
    if not picture.is_file():
        raise FileNotFoundError(f"{place} lists {picture}, which is not there. {AGAIN}")
    return picture, names.index(more[0])
