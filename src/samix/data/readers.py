"""The table of data sets: what reads which, all as a `Split`. What each should hold stands in official.py."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from samix.core.shapes import Labels, Stats
from samix.data import aircraft, cub200, inaturalist, photos, places205, stl10, tiny_imagenet
from samix.data.cifar import FOLDERS, cifar_source, read_cifar
from samix.data.embedded import draw_set, read_digits
from samix.data.folders import read_folder, read_pictures
from samix.data.packs import find_root, join_splits, read_pack
from samix.data.photos import Chosen, Tested
from samix.data.places import Layout, find_layout
from samix.data.sets import CIFAR_STATS, IMAGENET_STATS, ImageSet, Split
from samix.data.shard_index import read_shards
from samix.data.subsets import balanced_positions, pick
from samix.data.trees import read_tree

SHOWN = 400
"""Without labels there is nothing to test; this many pictures are kept to look at."""
UNKNOWN = ("picture",)
"""The classes of pictures without labels: one for all."""


class Wanted(NamedTuple):
    """What a reader is told of the settings `Data`, whose fields explain these."""

    name: str
    root: str | None
    size: int
    short: int | None
    """Short side to which pictures are reduced when read; None: as they are."""
    test: Tested
    train_pictures: int | None
    test_pictures: int | None
    seed: int


Reader: TypeAlias = Callable[[Wanted], Split]


# Sets that need no files, and packs.


def _synthetic(wanted: Wanted) -> Split:
    train, test = wanted.train_pictures or 10_000, wanted.test_pictures or 2_000
    return draw_set(wanted.size, train, test, wanted.seed)


def _digits(wanted: Wanted) -> Split:
    return read_digits(wanted.size, wanted.seed)


def _labelled_pack(path: Path) -> dict[str, Any]:
    parts = read_pack(path)
    for part in ("train", "val"):
        if part not in parts:
            raise ValueError(
                f"the pack {path} has no split '{part}'; supervised training needs both. "
                "--data.name pictures learns from it without labels."
            )
    return parts


def _split(parts: Mapping[str, Any], stats: Stats) -> Split:
    return Split(ImageSet(*parts["train"]), ImageSet(*parts["val"]), *stats)


def _photos(read: Callable[[Path, Tested, Chosen], dict[str, Any]], pack: str) -> Reader:
    def load(wanted: Wanted) -> Split:
        def chosen(labels: Labels) -> Tensor | None:
            count = wanted.train_pictures
            return None if count is None else balanced_positions(labels, count, wanted.seed, "train")

        root = find_root(wanted.root, wanted.name, (pack,), f"the pack {pack} (docs/few_photos.md)")
        return _split(read(root / pack, wanted.test, chosen), IMAGENET_STATS)

    return load


# Published sets.


def _cifar(classes: int) -> Reader:
    def load(wanted: Wanted) -> Split:
        name = f"cifar{classes}"
        root = find_root(wanted.root, name, (f"{name}.npz", FOLDERS[classes]), cifar_source(classes))
        pack = root / f"{name}.npz"
        return _split(_labelled_pack(pack) if pack.is_file() else read_cifar(root, classes), CIFAR_STATS)

    return load


def _tiny_imagenet(wanted: Wanted) -> Split:
    entries = (tiny_imagenet.FOLDER, "tiny_imagenet.npz")
    root = find_root(wanted.root, "tiny-imagenet", entries, tiny_imagenet.SOURCE)
    folder, pack = (root / entry for entry in entries)
    # The folder first: a pack may hold only a part of the pictures.
    parts = tiny_imagenet.read_tiny_imagenet(folder) if folder.exists() else _labelled_pack(pack)
    return _split(parts, IMAGENET_STATS)


def _listed(layout: Layout, read: Callable[[Path, int | None], dict[str, Any]]) -> Reader:
    return lambda wanted: _split(read(find_layout(wanted.root, layout), wanted.short), IMAGENET_STATS)


def _inaturalist(year: int) -> Reader:
    def read(root: Path, short: int | None) -> dict[str, Any]:
        return inaturalist.read_inaturalist(root, year, short)

    return _listed(inaturalist.layout(year), read)


def _stl10(wanted: Wanted) -> Split:
    return _split(stl10.read_stl10(find_layout(wanted.root, stl10.LAYOUT)), IMAGENET_STATS)


def _stl10_unlabelled(wanted: Wanted) -> Split:
    root = find_layout(wanted.root, stl10.UNLABELLED)
    labelled = _split(stl10.read_stl10(root), IMAGENET_STATS)
    pictures = stl10.read_unlabelled(root)
    train = ImageSet(pictures, torch.zeros(len(pictures), dtype=torch.long), UNKNOWN)
    return labelled._replace(train=train, known=labelled.train)


# Pictures of one's own, and large sets in the usual layouts.


def _folder(wanted: Wanted) -> Split:
    if wanted.root is None:
        raise FileNotFoundError(
            "the dataset 'folder' needs --data.root: a folder of class folders, or with such in train/ and "
            "val/, or a pack."
        )
    root = Path(wanted.root)
    if root.is_file():
        return _split(_labelled_pack(root), IMAGENET_STATS)
    if not root.is_dir():
        raise FileNotFoundError(
            f"data.root {root} is not a folder. It should hold a folder per class, or train/ and val/."
        )
    unreadable: list[Path] = []
    parts = (
        read_folder(root, test=wanted.test, short=wanted.short, unreadable=unreadable)
        if (root / "train").is_dir()
        else read_tree(root, unreadable, wanted.short)
    )
    classes = len(parts["train"][2])
    if wanted.train_pictures is not None and wanted.train_pictures < classes:
        raise ValueError(
            f"data.train_pictures is {wanted.train_pictures}, fewer than the {classes} classes in {root}: "
            "some would have nothing to learn from."
        )
    return _split(parts, IMAGENET_STATS)


def _shards(wanted: Wanted) -> Split:
    if wanted.root is None:
        raise FileNotFoundError(
            "the dataset 'shards' needs --data.root: a folder with train-000000.tar, val-000000.tar, ..."
        )
    return _split(read_shards(Path(wanted.root), test=wanted.test, short=wanted.short), IMAGENET_STATS)


def _pictures(wanted: Wanted) -> Split:
    if wanted.root is None:
        raise FileNotFoundError(
            "the dataset 'pictures' needs --data.root: a folder with pictures in it or below, or a pack."
        )
    root = Path(wanted.root)
    pictures = join_splits(read_pack(root)) if root.is_file() else read_pictures(root, [])
    part = ImageSet(pictures, torch.zeros(len(pictures), dtype=torch.long), UNKNOWN)
    shown = torch.arange(min(len(part.labels), SHOWN))
    test = part._replace(pictures=pick(part.pictures, shown), labels=part.labels[shown])
    return Split(part, test, *IMAGENET_STATS)


EMBEDDED = ("synthetic", "digits")
WITH_TEST = ("flowers102", "oxford-pets", "folder", "shards")
"""Sets whose pictures for validation and for the last test are told apart."""
DATASETS: dict[str, Reader] = {
    "synthetic": _synthetic,
    "digits": _digits,
    "cifar10": _cifar(10),
    "cifar100": _cifar(100),
    "tiny-imagenet": _tiny_imagenet,
    "stl10": _stl10,
    "stl10-unlabelled": _stl10_unlabelled,
    "cub200": _listed(cub200.LAYOUT, cub200.read_cub200),
    "aircraft": _listed(aircraft.LAYOUT, aircraft.read_aircraft),
    "inat2017": _inaturalist(2017),
    "inat2018": _inaturalist(2018),
    "places205": _listed(places205.LAYOUT, places205.read_places205),
    "flowers102": _photos(photos.read_flowers, "flowers102.npz"),
    "oxford-pets": _photos(photos.read_pets, "oxford_pets.npz"),
    "caltech101": _photos(photos.read_caltech, "caltech101.npz"),
    "folder": _folder,
    "shards": _shards,
    "pictures": _pictures,
}
