"""What published sets hold: pictures to learn from and to test on, and classes; for `samix data`."""

from typing import NamedTuple


class Official(NamedTuple):
    """How many pictures and classes a whole copy of a set has."""

    train: int
    test: int
    classes: int


OFFICIAL: dict[str, Official] = {
    "cifar10": Official(50_000, 10_000, 10),
    "cifar100": Official(50_000, 10_000, 100),
    "tiny-imagenet": Official(100_000, 10_000, 200),
    "stl10": Official(5_000, 8_000, 10),
    "stl10-unlabelled": Official(100_000, 8_000, 10),
    "cub200": Official(5_994, 5_794, 200),
    "aircraft": Official(6_667, 3_333, 100),
    "imagenet": Official(1_281_167, 50_000, 1_000),
    "inat2017": Official(579_184, 95_986, 5_089),
    "inat2018": Official(437_513, 24_426, 8_142),
    "places205": Official(2_448_873, 20_500, 205),
    "flowers102": Official(1_020, 6_149, 102),
    "oxford-pets": Official(3_680, 3_669, 37),
}
"""By names of DATASETS, and imagenet, which is read as `folder` or as `shards`. Caltech-101's pack is a
choice of the set's pictures and has no official count."""
