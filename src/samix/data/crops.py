"""Random resized crops for whole batches: where to crop, and how a crop becomes a picture.

Parameters and crops are torchvision's, with one difference: pictures of one tensor are cropped by two matrix
products with the triangle filter that PIL and torchvision call antialiased bilinear.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torchvision.transforms import v2

from samix.core.seeds import uniform
from samix.core.shapes import Index

PictureBatch: TypeAlias = UInt8[Tensor, "B 3 h w"] | Sequence[Tensor]
"""One tensor [B, 3, H, W], or tensors [3, h, w] of any sizes."""
TRIES = 10
RATIO = 4 / 3
"""Crops are at most this much wider than high, or higher than wide."""


class Boxes(NamedTuple):
    """One crop per picture, in pixels."""

    top: Index
    left: Index
    height: Index
    width: Index


def random_resized_crop(
    pictures: PictureBatch, size: int, min_scale: float, flip_prob: float = 0.0, max_scale: float = 1.0
) -> Float[Tensor, "B _ {size} {size}"]:
    """A random part of every picture, a share U(min_scale, max_scale) of it with ratio 3/4 ... 4/3, resized.

    Pictures of a list are cropped one after the other by torchvision, those of a tensor all at once.
    """
    heights, widths = torch.tensor([picture.shape[-2:] for picture in pictures]).unbind(dim=1)
    boxes = draw_boxes(heights, widths, min_scale, max_scale)
    flipped = torch.rand(len(pictures)) < flip_prob
    if isinstance(pictures, Tensor):
        return resized_crop(pictures, boxes, flipped, size)
    crops = [
        v2.functional.resized_crop(picture, *box, size=[size, size], antialias=True)
        for picture, *box in zip(pictures, *(edge.tolist() for edge in boxes), strict=True)
    ]
    x = torch.stack(crops) / 255
    return torch.where(flipped.view(-1, 1, 1, 1).to(x.device), x.flip(3), x)


def draw_boxes(heights: Index, widths: Index, min_scale: float, max_scale: float = 1.0) -> Boxes:
    """The first of ten draws that fits its picture; if none does, the largest central box of legal ratio."""
    share = uniform((len(heights), TRIES), min_scale, max_scale)
    ratio = uniform((len(heights), TRIES), -math.log(RATIO), math.log(RATIO)).exp()
    area = share * (heights * widths)[:, None]
    tried_height, tried_width = (area / ratio).sqrt().round().long(), (area * ratio).sqrt().round().long()
    fits = (tried_height > 0) & (tried_width > 0)
    fits &= (tried_height <= heights[:, None]) & (tried_width <= widths[:, None])
    first, found = fits.int().argmax(dim=1, keepdim=True), fits.any(dim=1)

    height = torch.where(
        found, tried_height.gather(1, first)[:, 0], heights.minimum((widths * RATIO).round().long())
    )
    width = torch.where(
        found, tried_width.gather(1, first)[:, 0], widths.minimum((heights * RATIO).round().long())
    )
    # In float64, where a number below 1 times a side stays below the side.
    place = torch.rand(2, len(heights), dtype=torch.float64)
    top, left = (
        torch.where(found, (where * (room + 1)).long(), room // 2)
        for where, room in zip(place, (heights - height, widths - width), strict=True)
    )
    return Boxes(top, left, height, width)


def resized_crop(
    pictures: UInt8[Tensor, "B 3 h w"], boxes: Boxes, flipped: Bool[Tensor, "B"], size: int
) -> Float[Tensor, "B 3 {size} {size}"]:
    """The boxes of the pictures at the wanted size, mirrored where `flipped`, in [0, 1]."""
    rows = resampling_weights(boxes.top, boxes.height, torch.zeros_like(flipped), pictures.shape[2], size)
    columns = resampling_weights(boxes.left, boxes.width, flipped, pictures.shape[3], size)
    rows, columns = rows.to(pictures.device), columns.to(pictures.device)
    across = ((pictures / 255).flatten(1, 2) @ columns.mT).unflatten(1, (3, -1))  # [B, 3, h, size]
    # Channel by channel: one broadcast product would copy the weights for every channel.
    return torch.stack([rows @ channel for channel in across.unbind(dim=1)], dim=1)


def resampling_weights(
    start: Index, length: Index, flipped: Bool[Tensor, "B"], side: int, size: int
) -> Float[Tensor, "B {size} {side}"]:
    """Weights of a line's `side` pixels in the `size` pixels that [start, start + length) is resized to.

    A pixel counts by its distance to the middle of what the new pixel covers: 1 there, 0 one pixel away, or
    one new pixel away if these are larger.
    """
    start, length, flipped = start[:, None, None], length[:, None, None], flipped[:, None, None]
    step = length / size
    middle = start + (torch.arange(size)[:, None] + 0.5) * step  # [B, size, 1]
    middle = torch.where(flipped, middle.flip(1), middle)
    pixel = torch.arange(side) + 0.5
    distance = (pixel - middle).abs_() / step.clamp(min=1)  # [B, size, side]
    weight = (1 - distance).clamp_(min=0).mul_((pixel > start) & (pixel < start + length))
    return weight.div_(weight.sum(dim=2, keepdim=True))


__all__ = ["Boxes", "PictureBatch", "draw_boxes", "random_resized_crop"]
