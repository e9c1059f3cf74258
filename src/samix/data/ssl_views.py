"""Random views for self-supervised training, drawn for whole batches: two views of every picture.

A view is crop and flip (`crops`), colour jitter, grey, blur, solarise (`colours`), in this order; every
picture draws its own parameters, from torch's CPU generator whatever the device. Between bytes in and bytes
out all is float32 in [0, 1]. Parameters and changes are torchvision's, but for what the two files name.
BYOL's crops are bicubic in the original, bilinear here.

SwAV may see small crops beside the two views, packed into canvases behind them (`core.small_crops`).
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from samix.core.checks import (
    check_fields,
    check_not_negative,
    check_positive_share,
    check_share,
)
from samix.core.images import to_bytes
from samix.core.small_crops import SmallCrops, pack
from samix.data.colours import Strengths, gaussian_blur, jitter, solarize, to_grey
from samix.data.crops import PictureBatch, random_resized_crop

PART = 2**18
"""Pixels that are worked on at a time: few enough for the processor's cache."""


def is_range(ends: tuple[float, float]) -> bool:
    """Whether 0 < low <= high, both finite."""
    low, high = ends
    return 0 < low <= high < math.inf


@dataclass(frozen=True, kw_only=True)
class Augment:
    """One random view; the defaults are MoCo v2's."""

    min_scale: float = 0.2
    """Smallest share of the picture's area that a crop may take."""
    max_scale: float = 1.0
    """Largest share of the picture's area that a crop may take."""
    brightness: float = 0.4
    """Jitter: brightness times U(1 - this, 1 + this), never below 0."""
    contrast: float = 0.4
    """Jitter: contrast times U(1 - this, 1 + this), never below 0."""
    saturation: float = 0.4
    """Jitter: saturation times U(1 - this, 1 + this), never below 0."""
    hue: float = 0.1
    """Jitter: hue turned by U(-this, this) of the colour circle."""
    jitter_prob: float = 0.8
    """How often a picture's colours are jittered."""
    grey_prob: float = 0.2
    """How often a picture turns grey."""
    grey_first: bool = False
    """Grey before the jitter instead of after it (MoCo v1)."""
    blur_prob: float = 0.5
    """How often a picture is blurred."""
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    """Range of the blur's standard deviation in pixels."""
    solarize_prob: float = 0.0
    """How often a picture's bright half is inverted."""
    flip_prob: float = 0.5
    """How often a picture is mirrored."""

    def __post_init__(self) -> None:
        check_positive_share(self, "augment", "min_scale", "max_scale")
        if self.max_scale < self.min_scale:
            raise ValueError(
                f"augment.max_scale must be at least augment.min_scale ({self.min_scale}), "
                f"got {self.max_scale}."
            )
        check_not_negative(self, "augment", "brightness", "contrast", "saturation")
        check_fields(self, "augment", ["hue"], lambda turn: 0 <= turn <= 0.5, "must lie in [0, 0.5]")
        check_share(self, "augment", "jitter_prob", "grey_prob", "blur_prob", "solarize_prob", "flip_prob")
        check_fields(self, "augment", ["blur_sigma"], is_range, "must be 0 < low <= high")

    @property
    def strengths(self) -> Strengths:
        """Of the jitter, as `jitter` takes them."""
        return (self.brightness, self.contrast, self.saturation, self.hue)


_MOCO = Augment()
_SIMCLR = replace(_MOCO, min_scale=0.08, brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2)
_BYOL = (
    replace(_MOCO, min_scale=0.08, saturation=0.2, blur_prob=1.0),
    replace(_MOCO, min_scale=0.08, saturation=0.2, blur_prob=0.1, solarize_prob=0.2),
)

AUGMENTS: dict[str, tuple[Augment, Augment]] = {
    "moco-v1": (replace(_MOCO, hue=0.4, jitter_prob=1.0, grey_first=True, blur_prob=0.0),) * 2,
    "moco-v2": (_MOCO, _MOCO),
    "moco-v3": (replace(_BYOL[0], min_scale=0.2), replace(_BYOL[1], min_scale=0.2)),
    "simclr": (_SIMCLR, _SIMCLR),
    "byol": _BYOL,
    "swav": (_SIMCLR, _SIMCLR),
    "swav-multi": (replace(_SIMCLR, min_scale=0.14),) * 2,
    "simsiam": (_MOCO, _MOCO),
    "small": (replace(_MOCO, blur_prob=0.0),) * 2,
}
"""First and second view of each method; `swav-multi` goes with small crops, `small` is MoCo v2's for pictures
that are too small to blur."""


def two_views(
    pictures: PictureBatch, size: int, pair: tuple[Augment, Augment], small: SmallCrops | None = None
) -> UInt8[Tensor, "images 3 {size} {size}"]:
    """All first views, then all second views: [2 B, 3, size, size]; behind them the canvases of small crops.

    The pictures are one tensor [B, 3, H, W], or a list of tensors [3, h, w] of any sizes.
    """
    views = [one_view(pictures, size, augment) for augment in pair]
    if small is not None and small.count:
        part = replace(pair[0], min_scale=small.min_scale, max_scale=small.max_scale)
        crops = [one_view(pictures, small.size, part) for _ in range(small.count)]
        views.append(pack(crops, size))
    return torch.cat(views)


def one_view(pictures: PictureBatch, size: int, augment: Augment) -> UInt8[Tensor, "B 3 {size} {size}"]:
    """One random view of every picture, in bytes."""
    count = max(PART // size**2, 1)
    parts = [pictures[first : first + count] for first in range(0, len(pictures), count)]
    return torch.cat([to_bytes(random_view(part, size, augment)) for part in parts])


def random_view(pictures: PictureBatch, size: int, augment: Augment) -> Float[Tensor, "B 3 {size} {size}"]:
    """One random view of every picture, in [0, 1]."""
    x = random_resized_crop(pictures, size, augment.min_scale, augment.flip_prob, augment.max_scale)
    if augment.grey_first:
        x = jitter(to_grey(x, augment.grey_prob), augment.strengths, augment.jitter_prob)
    else:
        x = to_grey(jitter(x, augment.strengths, augment.jitter_prob), augment.grey_prob)
    x = gaussian_blur(x, augment.blur_sigma, augment.blur_prob)
    return solarize(x, augment.solarize_prob)


__all__ = ["AUGMENTS", "Augment", "random_view", "two_views"]
