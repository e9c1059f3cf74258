"""Datasets: the embedded ones, packs, torchvision's and any folder, all as an `ImageSet`.

Small sets are decoded once and kept in memory as uint8; large folders are decoded when asked. The number
of pictures that a run uses is `len(split.train.labels)` and `len(split.test.labels)`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from samix.core.checks import (
    check_at_least,
    check_at_most,
    check_fields,
    check_not_negative,
    check_positive_share,
    check_share,
    check_words,
)
from samix.core.seeds import fold
from samix.core.shapes import Labels, Stats
from samix.core.words import suggest
from samix.data import photos, tiny_imagenet
from samix.data.cifar import FOLDERS, cifar_source, read_cifar
from samix.data.folders import LazyPictures, read_folder, read_pictures, warn_of_unreadable
from samix.data.packs import Packed, find_root, join_splits, read_pack
from samix.data.photos import Chosen
from samix.data.synthetic import SHAPES, draw_pictures
from samix.data.trees import read_tree

TestedOn: TypeAlias = Literal["val", "test"]
ViewName: TypeAlias = Literal["crop-flip", "resized-crop", "none"]
"""Training views; `views.BUILDERS` makes them."""
MOST_SIDE, MOST_WORKERS = 4096, 1024
"""Pixels of a side, loading processes: no run has use for more."""
MOST_DRAWN, MOST_DRAWN_BYTES = 200_000, 2**32
"""Pictures of the embedded set, and what they may take together: more would take minutes and all memory."""
SHOWN = 400
"""Without labels there is nothing to test; this many pictures are kept to look at."""
CIFAR_STATS = Stats((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
IMAGENET_STATS = Stats((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

Pictures: TypeAlias = Tensor | list[Tensor] | Packed | LazyPictures
"""uint8 [3, H, W] each, one tensor [N, 3, H, W] where all sizes agree; or not decoded yet."""


class ImageSet(NamedTuple):
    """Pictures with their labels and the names of the classes."""

    pictures: Pictures
    labels: Labels
    classes: tuple[str, ...]


class Split(NamedTuple):
    """A dataset: what to learn from and what to test on, with the statistics to normalise by."""

    train: ImageSet
    test: ImageSet
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def stats(self) -> Stats:
        """How its images are normalised."""
        return Stats(self.mean, self.std)

    def normalised_by(self, stats: Stats | None) -> "Split":
        """The same pictures, normalised by other statistics; None: by their own."""
        return self if stats is None else self._replace(mean=stats.mean, std=stats.std)


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which pictures, and how they are seen in training and testing."""

    name: str = "synthetic"
    """A name of DATASETS: synthetic, digits, cifar10, cifar100, tiny-imagenet, flowers102, oxford-pets,
    caltech101, folder, pictures."""
    root: str | None = None
    """Folder of the dataset (`folder`, `pictures`: or a pack, .npz); without it $SAMIX_DATA, then ./data."""
    size: int = 32
    """Side of the square picture that the network sees."""
    train_pictures: int | None = None
    """Keep only this many training pictures, balanced over classes; null keeps all."""
    test_pictures: int | None = None
    """Keep only this many test pictures, balanced over classes; null keeps all."""
    subset_seed: int = 0
    """Which pictures a subset keeps (and which ones the synthetic set draws)."""
    view: ViewName = "crop-flip"
    """Training view: crop-flip (pad 4, crop, flip), resized-crop (random resized crop, flip) or none."""
    min_scale: float = 0.08
    """Smallest area that resized-crop may take."""
    test_resize: int | None = None
    """Short side before the centre crop of a test picture; null: resized to the crop only if needed."""
    workers: int = 0
    """Processes that prepare batches, at most one per core; sets in memory need none."""
    test: TestedOn = "val"
    """What a run is tested on: val, to choose settings by, or test, for the last word; for sets with both."""
    test_zoom: float | None = None
    """Short side before the centre crop in multiples of that crop, where test_resize is null."""
    shrink: float | None = None
    """Short side to which pictures of a folder are reduced when read, in multiples of `size`; null: as is."""
    test_size: int | None = None
    """Side of the square picture that the network is tested on; null: `size`."""
    rand_augment: int | None = None
    """Magnitude of timm's RandAugment (two changes, deviation .5, increasing set), 0 to 10; null: none."""
    jitter: float = 0.0
    """Brightness, contrast and saturation times U(1 - this, 1 + this), behind RandAugment."""
    erasing: float = 0.0
    """Probability of replacing a rectangle of a training picture by noise (random erasing)."""
    repeats: int = 1
    """How often each drawn picture comes in an epoch, which then sees fewer of them (DeiT: 3)."""

    def __post_init__(self) -> None:
        if self.name not in DATASETS:
            raise ValueError(f"unknown dataset {suggest(self.name, DATASETS)}")
        if self.root is not None and self.name in EMBEDDED:
            raise ValueError(
                f"data.root is {self.root!r}, but {self.name!r} reads no files. Your own pictures: "
                "--data.name folder."
            )
        check_words(self, "data")
        check_at_least(8, self, "data", "size", "test_size")
        check_at_most(MOST_SIDE, self, "data", "size", "test_size", "test_resize")
        check_augmentation(self)
        check_at_most(MOST_WORKERS, self, "data", "workers")
        check_positive_share(self, "data", "min_scale")
        check_not_negative(self, "data", "workers")
        more = "must be at least 1, or null"
        check_fields(self, "data", ("test_zoom", "shrink"), lambda times: times >= 1, more)
        if self.test == "test" and self.name not in WITH_TEST:
            raise ValueError(
                f"data.test is 'test', but {self.name!r} has one set of pictures to test on: "
                f"leave it at val. Both are there in {', '.join(WITH_TEST)}."
            )
        pair = "must be at least 2 (a pair), or null for all"
        check_fields(self, "data", ("train_pictures", "test_pictures"), lambda count: count >= 2, pair)
        if self.test_resize is not None and self.test_resize < self.tested_size:
            name = "size" if self.test_size is None else "test_size"
            raise ValueError(
                f"data.test_resize must be at least data.{name} ({self.tested_size}), which is cut from it; "
                f"got {self.test_resize}."
            )

    @property
    def tested_size(self) -> int:
        """Side of a test picture."""
        return self.size if self.test_size is None else self.test_size

    @property
    def test_short(self) -> int | None:
        """Short side of a test picture before the centre crop; None: the picture is squeezed into `size`."""
        if self.test_resize is None and self.test_zoom is not None:
            return round(self.test_zoom * self.tested_size)
        return self.test_resize


def check_augmentation(data: Data) -> None:
    """Refuses changes of training pictures that cannot be."""
    check_not_negative(data, "data", "rand_augment", "jitter")
    check_at_most(10, data, "data", "rand_augment")
    check_share(data, "data", "erasing")
    check_at_least(1, data, "data", "repeats")


def load_data(data: Data) -> Split:
    """Reads the dataset that `data` names and cuts it to the wanted number of pictures."""
    split = DATASETS[data.name](data)
    train = balanced_subset(split.train, data.train_pictures, data.subset_seed, "train")
    test = balanced_subset(split.test, data.test_pictures, data.subset_seed, "test")
    decoded = split._replace(train=decode_pictures(train), test=decode_pictures(test))
    unreadable = [path for images in (train, test) for path in left_out(images)]
    if unreadable:
        warn_of_unreadable(list(dict.fromkeys(unreadable)))
        check_classes(decoded.train)
    return decoded


def left_out(images: ImageSet) -> list[Path]:
    """The files of a set that cannot be read."""
    return images.pictures.unreadable or [] if isinstance(images.pictures, LazyPictures) else []


def check_classes(train: ImageSet) -> None:
    """Refuses a set that has lost all training pictures of a class."""
    counts = train.labels.bincount(minlength=len(train.classes)).tolist()
    if lost := [name for name, count in zip(train.classes, counts, strict=True) if not count]:
        raise ValueError(f"no training picture can be read of the classes {', '.join(lost)}. Repair some.")


def decode_pictures(images: ImageSet) -> ImageSet:
    """Decodes the pictures of a pack or a folder, once it is known which ones are wanted."""
    if isinstance(images.pictures, LazyPictures) and images.pictures.unreadable is not None:
        pictures, kept = images.pictures.decode_readable()
        return images._replace(pictures=pictures, labels=images.labels[kept])
    if isinstance(images.pictures, Packed | LazyPictures):
        return images._replace(pictures=images.pictures.decode())
    return images


def balanced_subset(images: ImageSet, count: int | None, seed: int, which: str) -> ImageSet:
    """`count` pictures with equally many of every class (within one), chosen by `seed`."""
    if count is None or count == len(images.labels):
        return images
    chosen = balanced_positions(images.labels, count, seed, which)
    return ImageSet(pick(images.pictures, chosen), images.labels[chosen], images.classes)


def balanced_positions(labels: Labels, count: int, seed: int, which: str) -> Tensor:
    """Positions [count] of equally many pictures of every class (within one), chosen by `seed`."""
    if count > len(labels):
        raise ValueError(
            f"data.{which}_pictures is {count}, but the set has only {len(labels)}. "
            f"--data.{which}_pictures null takes all."
        )
    generator = torch.Generator().manual_seed(fold(seed, which))
    order = torch.randperm(len(labels), generator=generator)
    shuffled = labels[order]
    # Rank of every picture within its class: the first of each class come first.
    rank = torch.empty_like(shuffled)
    for label in shuffled.unique():
        mine = shuffled == label
        rank[mine] = torch.arange(int(mine.sum()))
    return order[rank.argsort(stable=True)[:count]]


def pick(pictures: Pictures, chosen: Tensor) -> Pictures:
    """Some of the pictures; those that are not decoded yet stay so."""
    if isinstance(pictures, Tensor):
        return pictures[chosen]
    if isinstance(pictures, Packed | LazyPictures):
        return pictures.pick(chosen)
    return [pictures[i] for i in chosen.tolist()]


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


def _synthetic(data: Data) -> Split:
    counts = (data.train_pictures or 10_000, data.test_pictures or 2_000)
    if max(counts) > MOST_DRAWN or sum(counts) * 3 * data.size**2 > MOST_DRAWN_BYTES:
        raise ValueError(
            f"{counts[0]} training and {counts[1]} test pictures of {data.size} px are more than the "
            f"embedded set draws: at most {MOST_DRAWN} of either, {MOST_DRAWN_BYTES >> 30} GB together. Take "
            "fewer, or smaller ones."
        )
    train, test = (
        draw_pictures(count, size=data.size, seed=fold(data.subset_seed, which))
        for count, which in zip(counts, ("train", "test"), strict=True)
    )
    names = tuple(SHAPES)
    return Split(
        ImageSet(train.images, train.labels, names),
        ImageSet(test.images, test.labels, names),
        *IMAGENET_STATS,
    )


def _digits(data: Data) -> Split:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    grey = torch.from_numpy(bunch.images * (255 / 16)).round().to(torch.uint8)  # [N, 8, 8]
    pictures = grey[:, None].expand(-1, 3, -1, -1)
    pictures = torch.nn.functional.interpolate(pictures.float(), (data.size, data.size)).to(torch.uint8)
    labels = torch.from_numpy(bunch.target).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(fold(data.subset_seed)))
    names = tuple(str(digit) for digit in range(10))
    test, train = order[:450], order[450:]
    return Split(
        ImageSet(pictures[train], labels[train], names),
        ImageSet(pictures[test], labels[test], names),
        *IMAGENET_STATS,
    )


def _cifar(classes: int) -> Callable[[Data], Split]:
    def load(data: Data) -> Split:
        name = f"cifar{classes}"
        root = find_root(data.root, name, (f"{name}.npz", FOLDERS[classes]), cifar_source(classes))
        pack = root / f"{name}.npz"
        return _split(_labelled_pack(pack) if pack.is_file() else read_cifar(root, classes), CIFAR_STATS)

    return load


def _tiny_imagenet(data: Data) -> Split:
    entries = (tiny_imagenet.FOLDER, "tiny_imagenet.npz")
    root = find_root(data.root, "tiny-imagenet", entries, tiny_imagenet.SOURCE)
    folder, pack = (root / entry for entry in entries)
    # The folder first: a pack may hold only a part of the pictures.
    parts = tiny_imagenet.read_tiny_imagenet(folder) if folder.exists() else _labelled_pack(pack)
    return _split(parts, IMAGENET_STATS)


def _folder(data: Data) -> Split:
    if data.root is None:
        raise FileNotFoundError(
            "the dataset 'folder' needs --data.root: a folder of class folders, or with such in train/ and "
            "val/, or a pack."
        )
    root, short = Path(data.root), None if data.shrink is None else round(data.shrink * data.size)
    if root.is_file():
        return _split(_labelled_pack(root), IMAGENET_STATS)
    if not root.is_dir():
        raise FileNotFoundError(
            f"data.root {root} is not a folder. It should hold a folder per class, or train/ and val/."
        )
    unreadable: list[Path] = []
    parts = (
        read_folder(root, test=data.test, short=short, unreadable=unreadable)
        if (root / "train").is_dir()
        else read_tree(root, unreadable, short)
    )
    classes = len(parts["train"][2])
    if data.train_pictures is not None and data.train_pictures < classes:
        raise ValueError(
            f"data.train_pictures is {data.train_pictures}, fewer than the {classes} classes in {root}: some "
            "would have nothing to learn from."
        )
    return _split(parts, IMAGENET_STATS)


def _photos(read: Callable[[Path, TestedOn, Chosen], dict[str, Any]], pack: str) -> Callable[[Data], Split]:
    def load(data: Data) -> Split:
        def chosen(labels: Labels) -> Tensor | None:
            count = data.train_pictures
            return None if count is None else balanced_positions(labels, count, data.subset_seed, "train")

        root = find_root(data.root, data.name, (pack,), f"the pack {pack} (docs/few_photos.md)")
        return _split(read(root / pack, data.test, chosen), IMAGENET_STATS)

    return load


def _pictures(data: Data) -> Split:
    if data.root is None:
        raise FileNotFoundError(
            "the dataset 'pictures' needs --data.root: a folder with pictures in it or below, or a pack."
        )
    root = Path(data.root)
    pictures = join_splits(read_pack(root)) if root.is_file() else read_pictures(root, [])
    part = ImageSet(pictures, torch.zeros(len(pictures), dtype=torch.long), ("picture",))
    shown = torch.arange(min(len(part.labels), SHOWN))
    test = part._replace(pictures=pick(part.pictures, shown), labels=part.labels[shown])
    return Split(part, test, *IMAGENET_STATS)


EMBEDDED = ("synthetic", "digits")
WITH_TEST = ("flowers102", "oxford-pets", "folder")
"""Sets whose pictures for validation and for the last test are told apart."""
DATASETS: dict[str, Callable[[Data], Split]] = {
    "synthetic": _synthetic,
    "digits": _digits,
    "cifar10": _cifar(10),
    "cifar100": _cifar(100),
    "tiny-imagenet": _tiny_imagenet,
    "flowers102": _photos(photos.read_flowers, "flowers102.npz"),
    "oxford-pets": _photos(photos.read_pets, "oxford_pets.npz"),
    "caltech101": _photos(photos.read_caltech, "caltech101.npz"),
    "folder": _folder,
    "pictures": _pictures,
}
