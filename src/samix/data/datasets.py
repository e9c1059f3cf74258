"""Settings of the data, `Data`, and the set that they describe, read and cut to size, by `load_data`.

Small sets are decoded once and kept in memory as uint8; large ones are decoded when asked. The number
of pictures that a run uses is `len(split.train.labels)` and `len(split.test.labels)`.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from samix.core.checks import (
    check_at_least,
    check_at_most,
    check_fields,
    check_not_negative,
    check_positive_share,
    check_share,
    check_words,
)
from samix.core.words import suggest
from samix.data.folders import warn_of_unreadable
from samix.data.readers import DATASETS, EMBEDDED, WITH_TEST, Wanted
from samix.data.sets import CIFAR_STATS, IMAGENET_STATS, ImageSet, Pictures, Split
from samix.data.subsets import (
    balanced_positions,
    balanced_subset,
    check_classes,
    decode_pictures,
    left_out,
)

TestedOn: TypeAlias = Literal["val", "test"]
ViewName: TypeAlias = Literal["crop-flip", "resized-crop", "none"]
"""Training views; `views.BUILDERS` makes them."""
MOST_SIDE, MOST_WORKERS = 4096, 1024
"""Pixels of a side, loading processes: no run has use for more."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which pictures, and how they are seen in training and testing."""

    name: str = "synthetic"
    """A name of DATASETS: synthetic, digits, cifar10, cifar100, tiny-imagenet, stl10, stl10-unlabelled,
    cub200, aircraft, inat2017, inat2018, places205, flowers102, oxford-pets, caltech101, folder, shards,
    pictures."""
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
    """Short side to which pictures of files are reduced when read, in multiples of `size`; null: as is."""
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

    @property
    def wanted(self) -> Wanted:
        """What a reader of DATASETS has to know of them."""
        return Wanted(
            name=self.name,
            root=self.root,
            size=self.size,
            short=None if self.shrink is None else round(self.shrink * self.size),
            test=self.test,
            train_pictures=self.train_pictures,
            test_pictures=self.test_pictures,
            seed=self.subset_seed,
        )


def check_augmentation(data: Data) -> None:
    """Refuses changes of training pictures that cannot be."""
    check_not_negative(data, "data", "rand_augment", "jitter")
    check_at_most(10, data, "data", "rand_augment")
    check_share(data, "data", "erasing")
    check_at_least(1, data, "data", "repeats")


def load_data(data: Data) -> Split:
    """Reads the dataset that `data` names and cuts it to the wanted number of pictures."""
    split = DATASETS[data.name](data.wanted)
    train = balanced_subset(split.train, data.train_pictures, data.subset_seed, "train")
    test = balanced_subset(split.test, data.test_pictures, data.subset_seed, "test")
    decoded = split._replace(train=decode_pictures(train), test=decode_pictures(test))
    unreadable = [path for images in (train, test) for path in left_out(images)]
    if unreadable:
        warn_of_unreadable(list(dict.fromkeys(unreadable)))
        check_classes(decoded.train)
    return decoded


__all__ = [
    "CIFAR_STATS",
    "DATASETS",
    "IMAGENET_STATS",
    "Data",
    "ImageSet",
    "Pictures",
    "Split",
    "TestedOn",
    "ViewName",
    "balanced_positions",
    "balanced_subset",
    "load_data",
]
