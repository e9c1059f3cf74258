"""Object retention: how much of each object's pixels survives in a mixed image.

The label of a mixed image names two objects. With true object masks (the embedded dataset has them) one can
count what is shown: the share of the first object's pixels that the mask keeps, and the share of the
partner's object that shows through 1 - mask. Mixup at lam keeps exactly lam and 1 - lam. A policy that does
not look at the pictures has `both` (the mean of the two shares) = 1/2 in expectation, at any lam and for any
shape of mask, because both objects come from the same distribution of places. `both` above 1/2 means that the
policy spends its pixels on objects; `weaker` tells whether it shows both or hides one. How much of it is
possible, `best_retention` tells.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing, draw_derangement
from samix.core.shapes import Images, Lam, Mask, PerSample
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


def best_retention(first: ObjectMasks, second: ObjectMasks, lam: Lam) -> PerSample:
    """The largest `both` that any mask of mean lam reaches, for objects that stay where they are.

    both = (1 + sum over pixels of mask w) / 2 with w = first / |first| - second / |second|, so the best mask
    shows the first image at the lam H W pixels of largest w. Policies that move pictures may keep more.

    >>> left, right = torch.tensor([[[[True, False]]]]), torch.tensor([[[[False, True]]]])
    >>> best_retention(left, right, torch.tensor([0.5])).item()  # apart: both whole
    1.0
    >>> best_retention(left, left, torch.tensor([0.5])).item()  # at one place: either, or half of both
    0.5
    """
    shares = [objects.flatten(1).double() for objects in (first, second)]
    shares = [share / share.sum(dim=1, keepdim=True) for share in shares]
    worth = (shares[0] - shares[1]).sort(dim=1, descending=True).values  # [B, n]
    count = worth.shape[1]
    shown = (lam.double()[:, None] * count - torch.arange(count)).clamp(0, 1)  # the last pixel in part
    return ((1 + (worth * shown).sum(dim=1)) / 2).float()


@torch.no_grad()
def retention_sweep(
    mix: Mix, pictures: Drawn, lams: Sequence[float], *, batch: int = 100, seed: int = 0
) -> list[RetentionRow]:
    """One row per lam, over the same pairs at every lam, with one mask per pair.

    `mix` receives images in [0, 1]; a policy whose network wants normalised images normalises them itself.
    """
    parts = split_pictures(pictures, batch)
    return [sweep_row(mix, parts, lam, seed) for lam in lams]


def best_sweep(pictures: Drawn, lams: Sequence[float], *, batch: int = 100, seed: int = 0) -> list[float]:
    """The mean of `best_retention` at every lam, over the pairs that `retention_sweep` makes."""
    parts = split_pictures(pictures, batch)
    means = []
    for lam in lams:
        generator = torch.Generator().manual_seed(seed)
        pairs = [(objects, objects[draw_derangement(len(objects), generator)]) for _, objects in parts]
        best = [best_retention(first, second, torch.tensor([lam])) for first, second in pairs]
        means.append(float(torch.cat(best).mean()))
    return means


def split_pictures(pictures: Drawn, batch: int) -> list[tuple[Tensor, Tensor]]:
    """Images and objects in parts of nearly equal size: one picture alone would be its own partner."""
    if len(pictures.images) < 2:
        raise ValueError(f"retention needs at least 2 pictures to make pairs, got {len(pictures.images)}.")
    count = -(-len(pictures.images) // max(batch, 2))
    return list(zip(pictures.images.tensor_split(count), pictures.masks.tensor_split(count), strict=True))


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
