"""Some of a set's pictures: balanced over classes, chosen by a seed; decoded once it is known which ones."""

from pathlib import Path

import torch
from torch import Tensor

from samix.core.seeds import fold
from samix.core.shapes import Labels
from samix.data.folders import LazyPictures
from samix.data.sets import ImageSet, Pictures, Undecoded


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
    # Rank of every picture within its class: the first of each class come first.
    by_class = labels[order].argsort(stable=True)
    counts = labels.bincount()
    first = (counts.cumsum(0) - counts).repeat_interleave(counts)
    rank = torch.empty_like(by_class)
    rank[by_class] = torch.arange(len(labels)) - first
    return order[rank.argsort(stable=True)[:count]]


def pick(pictures: Pictures, chosen: Tensor) -> Pictures:
    """Some of the pictures; those that are not decoded yet stay so."""
    if isinstance(pictures, Tensor):
        return pictures[chosen]
    if isinstance(pictures, Undecoded):
        return pictures.pick(chosen)
    return [pictures[i] for i in chosen.tolist()]


def decode_pictures(images: ImageSet) -> ImageSet:
    """Decodes the pictures of a pack or a folder, once it is known which ones are wanted."""
    if isinstance(images.pictures, LazyPictures) and images.pictures.unreadable is not None:
        pictures, kept = images.pictures.decode_readable()
        return images._replace(pictures=pictures, labels=images.labels[kept])
    if isinstance(images.pictures, Undecoded):
        return images._replace(pictures=images.pictures.decode())
    return images


def left_out(images: ImageSet) -> list[Path]:
    """The files of a set that cannot be read."""
    return images.pictures.unreadable or [] if isinstance(images.pictures, LazyPictures) else []


def check_classes(train: ImageSet) -> None:
    """Refuses a set that has lost all training pictures of a class."""
    counts = train.labels.bincount(minlength=len(train.classes)).tolist()
    if lost := [name for name, count in zip(train.classes, counts, strict=True) if not count]:
        raise ValueError(f"no training picture can be read of the classes {', '.join(lost)}. Repair some.")
