"""What training pictures go through behind the crop: RandAugment, colour jitter, random erasing.

All three take and give batches uint8 [B, 3, H, W] and draw from the streams that `seeded` sets, so that a
batch is a function of its draw. RandAugment is timm's own (`rand-mM-mstd0.5-inc1`: two changes per picture,
each done with probability 1/2), on Pillow's pictures. Erasing is timm's mode `pixel`, but on bytes, as in
OpenMixup: its noise N(mean, std) is cut off at black and white, because views are normalised later, on the
training device. What RandAugment uncovers has ImageNet's mean colour, whatever the pictures are.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as v2

from samix.core.images import to_bytes, to_pixels
from samix.core.seeds import uniform
from samix.core.shapes import RawImages
from samix.data.colours import jitter
from samix.data.crops import TRIES, Boxes
from samix.data.datasets import IMAGENET_STATS, Data

Change: TypeAlias = Callable[[RawImages], RawImages]
ERASED = (0.02, 1 / 3)
"""Smallest and largest share of the picture that is erased."""
ERASED_RATIO = 0.3
"""A patch is at most 1 / this times as high as wide, or as wide as high."""


def changes_of(data: Data) -> list[Change]:
    """The changes that the settings ask for, in the order in which they are made."""
    changes: list[Change] = []
    if data.rand_augment is not None:
        changes.append(partial(rand_augment, transform=rand_augment_transform(data.rand_augment)))
    if data.jitter:
        strengths = (data.jitter, data.jitter, data.jitter, 0.0)
        changes.append(lambda pictures: to_bytes(jitter(pictures / 255, strengths, prob=1.0)))
    if data.erasing:
        changes.append(partial(erase, prob=data.erasing))
    return changes


def rand_augment_transform(magnitude: int) -> Callable[[Any], Any]:
    """timm's RandAugment of a magnitude between 0 and 10: Pillow's picture -> Pillow's picture."""
    from PIL import Image
    from timm.data.auto_augment import rand_augment_transform as transform  # slow to import

    colour = tuple(round(255 * share) for share in IMAGENET_STATS.mean)
    settings = {"img_mean": colour, "interpolation": Image.Resampling.BICUBIC}
    return transform(f"rand-m{magnitude}-mstd0.5-inc1", settings)


def rand_augment(pictures: RawImages, transform: Callable[[Any], Any]) -> RawImages:
    """Every picture through the transform, on its own; draws from Python's and NumPy's streams."""
    changed = [v2.pil_to_tensor(transform(v2.to_pil_image(picture))) for picture in pictures]
    return torch.stack(changed)


def erase(pictures: RawImages, prob: float) -> RawImages:
    """A share `prob` of the pictures, each with a rectangle of noise: a pixel's channels are N(mean, std)."""
    chosen = (torch.rand(len(pictures)) < prob).nonzero()[:, 0]
    boxes, found = draw_patches(len(chosen), *pictures.shape[-2:])
    erased = pictures.clone()
    for which, top, left, height, width in zip(
        *(edge[found].tolist() for edge in (chosen, *boxes)), strict=True
    ):
        noise = to_pixels(torch.randn(1, 3, height, width), IMAGENET_STATS)
        erased[which, :, top : top + height, left : left + width] = to_bytes(noise)[0]
    return erased


def draw_patches(count: int, height: int, width: int) -> tuple[Boxes, Tensor]:
    """Rectangles of an area's share U(*ERASED) and ratio exp U(log ERASED_RATIO, -log ERASED_RATIO): the
    first of ten draws that is smaller than the picture in both directions, and whether there was one."""
    area = uniform((count, TRIES), *ERASED) * height * width
    ratio = uniform((count, TRIES), math.log(ERASED_RATIO), -math.log(ERASED_RATIO)).exp()
    tall, wide = (area * ratio).sqrt().round().long(), (area / ratio).sqrt().round().long()
    fits = (tall < height) & (wide < width)
    first = fits.int().argmax(dim=1, keepdim=True)
    tall, wide = tall.gather(1, first)[:, 0], wide.gather(1, first)[:, 0]
    place = torch.rand(2, count, dtype=torch.float64)
    top, left = (
        (where * (room + 1)).long() for where, room in zip(place, (height - tall, width - wide), strict=True)
    )
    return Boxes(top, left, tall, wide), fits.any(dim=1)


__all__ = ["Change", "changes_of", "draw_patches", "erase", "rand_augment", "rand_augment_transform"]
