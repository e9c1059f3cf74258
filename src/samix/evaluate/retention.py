"""Object retention: how much of each object's pixels survives in a mixed image.

The label of a mixed image names two objects. With true object masks (the embedded dataset has them) one can
count what is shown: the share of the first object's pixels that the mask keeps, and the share of the
partner's object that shows through 1 - mask. Mixup at lam keeps exactly lam and 1 - lam. A policy that does
not look at the pictures has `both` (the mean of the two shares) = 1/2 in expectation, at any lam and for any
shape of mask, because both objects come from the same distribution of places. `both` above 1/2 means that the
policy spends its pixels on objects; `weaker` tells whether it shows both or hides one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing, draw_derangement
from samix.core.shapes import Images, Mask, PerSample
from samix.data import Drawn

ObjectMasks = Bool[Tensor, "B 1 H W"]
Mix = Callable[[Images, Pairing], Mixed]


class Retention(NamedTuple):
    """Shares in [0, 1], one per pair."""

    first: PerSample
    """Of the first image's object, weighed by the mask."""
    second: PerSample
    """Of the partner's object, weighed by 1 - mask."""

    @property
    def both(self) -> PerSample:
        """Mean of the two shares: 1/2 if the policy is blind, 1 if both objects are whole."""
        return (self.first + self.second) / 2

    @property
    def weaker(self) -> PerSample:
        """The smaller share: 0 if an object is gone though the label names it."""
        return torch.minimum(self.first, self.second)

    @property
    def clearest(self) -> PerSample:
        """The larger share: 1 if at least one object is whole."""
        return torch.maximum(self.first, self.second)


class RetentionRow(NamedTuple):
    """Means over all pairs at one lam."""

    lam: float
    first: float
    second: float
    both: float
    weaker: float
    clearest: float


def kept_share(weight: Mask, objects: ObjectMasks, moved: ObjectMasks | None = None) -> PerSample:
    """Share of each object's pixels that `weight` shows, where a policy may have `moved` them before."""
    pixels = objects.sum(dim=(1, 2, 3))
    if not pixels.all():
        empty = int((pixels == 0).nonzero()[0])
        raise ValueError(
            f"every object needs at least one pixel; the object mask at position {empty} is empty."
        )
    return (weight * (objects if moved is None else moved)).sum(dim=(1, 2, 3)) / pixels


def object_retention(mask: Mask, first: ObjectMasks, second: ObjectMasks) -> Retention:
    """What `mask` keeps of the objects `first` of the first images and `second` of their partners."""
    return Retention(kept_share(mask, first), kept_share(1 - mask, second))


def mixed_retention(mixed: Mixed, objects: ObjectMasks) -> Retention:
    """Retention of a mixed batch whose unmixed images show `objects`."""
    partners = objects[mixed.pairing.index]
    if mixed.sources is None:
        return object_retention(mixed.mask, objects, partners)
    first, second = mixed.sources(objects)
    return Retention(kept_share(mixed.mask, objects, first), kept_share(1 - mixed.mask, partners, second))


@torch.no_grad()
def retention_sweep(
    mix: Mix, pictures: Drawn, lams: Sequence[float], *, batch: int = 100, seed: int = 0
) -> list[RetentionRow]:
    """One row per lam, over the same pairs at every lam, with one mask per pair.

    `mix` receives images in [0, 1]; a policy whose network wants normalised images normalises them itself.
    """
    if len(pictures.images) < 2:
        raise ValueError(f"retention needs at least 2 pictures to make pairs, got {len(pictures.images)}.")
    # Parts of nearly equal size: a last part of one picture would have only itself as partner.
    count = -(-len(pictures.images) // max(batch, 2))
    parts = list(zip(pictures.images.tensor_split(count), pictures.masks.tensor_split(count), strict=True))
    return [sweep_row(mix, parts, lam, seed) for lam in lams]


def sweep_row(mix: Mix, parts: list[tuple[Tensor, Tensor]], lam: float, seed: int) -> RetentionRow:
    """Mixes every part at `lam` and averages over its pairs."""
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for images, objects in parts:
        pairing = Pairing(torch.full((len(images),), lam), draw_derangement(len(images), generator))
        rows.append(mixed_retention(mix(images.float() / 255, pairing), objects))
    kept = Retention(*(torch.cat(shares) for shares in zip(*rows, strict=True)))
    means = (kept.first, kept.second, kept.both, kept.weaker, kept.clearest)
    return RetentionRow(lam, *(float(share.mean()) for share in means))
