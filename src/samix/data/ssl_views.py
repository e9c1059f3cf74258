"""Random views for self-supervised training, drawn for whole batches: two views of every picture.

A view is crop and flip, colour jitter, grey, blur, solarise, in this order; every picture draws its own
parameters, from torch's CPU generator whatever the device. Between bytes in and bytes out all is float32 in
[0, 1]. Parameters and changes are torchvision's, with these differences:

- Pictures of one tensor are cropped by two matrix products with the triangle filter that PIL and torchvision
  call antialiased bilinear. BYOL's crops are bicubic in the original, bilinear here.
- The order of the four colour changes is drawn per call of `jitter` (`two_views` calls it for every 2**18
  pixels of a view: 256 pictures of 32 px, 28 of 96 px), not per picture.
- No fractions are lost between changes. torchvision cuts them off after each, so its jittered bytes are
  darker, by about one shade.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn import functional as F
from torchvision.transforms import v2

from samix.pairing import as_image_weight
from samix.pixels import to_bytes
from samix.typing import Images, Index, PerSample

Pictures = UInt8[Tensor, "B 3 h w"] | Sequence[Tensor]
Strengths = tuple[float, float, float, float]
TRIES = 10
RATIO = 4 / 3
"""Crops are at most this much wider than high, or higher than wide."""
LUMA = (0.2989, 0.587, 0.114)
"""What red, green and blue add to brightness."""
PART = 2**18
"""Pixels that are worked on at a time: few enough for the processor's cache."""


@dataclass(frozen=True, kw_only=True)
class Augment:
    """One random view; the defaults are MoCo v2's."""

    min_scale: float = 0.2
    """Smallest share of the picture's area that a crop may take; the largest is 1."""
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
        if not 0 < self.min_scale <= 1:
            raise ValueError(f"augment.min_scale must lie in (0, 1], got {self.min_scale}.")
        for name in ("brightness", "contrast", "saturation"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"augment.{name} must not be negative, got {getattr(self, name)}.")
        if not 0 <= self.hue <= 0.5:
            raise ValueError(f"augment.hue must lie in [0, 0.5], got {self.hue}.")
        for name in ("jitter_prob", "grey_prob", "blur_prob", "solarize_prob", "flip_prob"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"augment.{name} must lie in [0, 1], got {getattr(self, name)}.")
        low, high = self.blur_sigma
        if not 0 < low <= high < math.inf:
            raise ValueError(f"augment.blur_sigma must be 0 < low <= high, got {self.blur_sigma}.")

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
    "simsiam": (_MOCO, _MOCO),
    "small": (replace(_MOCO, blur_prob=0.0),) * 2,
}
"""First and second view of each method; `small` is MoCo v2's for pictures that are too small to blur."""


def two_views(
    pictures: Pictures, size: int, pair: tuple[Augment, Augment]
) -> UInt8[Tensor, "views 3 {size} {size}"]:
    """All first views, then all second views: [2 B, 3, size, size].

    The pictures are one tensor [B, 3, H, W], or a list of tensors [3, h, w] of any sizes.
    """
    count = max(PART // size**2, 1)
    parts = [pictures[first : first + count] for first in range(0, len(pictures), count)]
    return torch.cat([to_bytes(view(part, size, augment)) for augment in pair for part in parts])


def view(pictures: Pictures, size: int, augment: Augment) -> Float[Tensor, "B 3 {size} {size}"]:
    """One random view of every picture, in [0, 1]."""
    x = random_resized_crop(pictures, size, augment.min_scale, augment.flip_prob)
    if augment.grey_first:
        x = jitter(to_grey(x, augment.grey_prob), augment.strengths, augment.jitter_prob)
    else:
        x = to_grey(jitter(x, augment.strengths, augment.jitter_prob), augment.grey_prob)
    x = gaussian_blur(x, augment.blur_sigma, augment.blur_prob)
    return solarize(x, augment.solarize_prob)


# Where to crop, and how a crop becomes a picture.


class Boxes(NamedTuple):
    """One crop per picture, in pixels."""

    top: Index
    left: Index
    height: Index
    width: Index


def random_resized_crop(
    pictures: Pictures, size: int, min_scale: float, flip_prob: float = 0.0
) -> Float[Tensor, "B 3 {size} {size}"]:
    """A random part of every picture, of its area's share U(min_scale, 1) and ratio 3/4 ... 4/3, resized.

    Pictures of a list are cropped one after the other by torchvision, those of a tensor all at once.
    """
    heights, widths = torch.tensor([picture.shape[-2:] for picture in pictures]).unbind(dim=1)
    boxes = draw_boxes(heights, widths, min_scale)
    flipped = torch.rand(len(pictures)) < flip_prob
    if isinstance(pictures, Tensor):
        return resized_crop(pictures, boxes, flipped, size)
    crops = [
        v2.functional.resized_crop(picture, *box, size=[size, size], antialias=True)
        for picture, *box in zip(pictures, *(edge.tolist() for edge in boxes), strict=True)
    ]
    x = torch.stack(crops) / 255
    return torch.where(as_image_weight(flipped).to(x.device), x.flip(3), x)


def draw_boxes(heights: Index, widths: Index, min_scale: float) -> Boxes:
    """The first of ten draws that fits its picture; if none does, the largest central box of legal ratio."""
    share = uniform((len(heights), TRIES), min_scale, 1.0)
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
    rows = resampling(boxes.top, boxes.height, torch.zeros_like(flipped), pictures.shape[2], size)
    columns = resampling(boxes.left, boxes.width, flipped, pictures.shape[3], size)
    rows, columns = rows.to(pictures.device), columns.to(pictures.device)
    across = ((pictures / 255).flatten(1, 2) @ columns.mT).unflatten(1, (3, -1))  # [B, 3, h, size]
    # Channel by channel: one broadcast product would copy the weights for every channel.
    return torch.stack([rows @ channel for channel in across.unbind(dim=1)], dim=1)


def resampling(
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


# Colours.


def jitter(x: Images, strengths: Strengths, prob: float) -> Images:
    """Changes brightness, contrast, saturation and hue of a share `prob` of the pictures, in a random order.

    Every picture draws its own factors U(max(0, 1 - s), 1 + s) and hue U(-h, h); the order is drawn once.
    """
    *scales, turn = strengths
    ranges = [(max(0.0, 1 - scale), 1 + scale) for scale in scales] + [(-turn, turn)]

    def change(chosen: Images) -> Images:
        for which in torch.randperm(len(ADJUSTMENTS)).tolist():
            factor = uniform((len(chosen),), *ranges[which]).to(x)
            if strengths[which]:
                chosen = ADJUSTMENTS[which](chosen, factor)
        return chosen

    return sometimes(x, prob, change)


def to_grey(x: Images, prob: float) -> Images:
    """Turns a share `prob` of the pictures grey."""
    return sometimes(x, prob, lambda chosen: grey(chosen).expand_as(chosen))


def solarize(x: Images, prob: float) -> Images:
    """Inverts what is brighter than half (bytes from 128 on) in a share `prob` of the pictures."""
    return sometimes(x, prob, lambda chosen: chosen.minimum(1 - chosen))


def grey(x: Images) -> Float[Tensor, "B 1 H W"]:
    """Brightness of every pixel."""
    red, green, blue = LUMA
    return (red * x[:, :1]).add_(x[:, 1:2], alpha=green).add_(x[:, 2:], alpha=blue)


def adjust_brightness(x: Images, factor: PerSample) -> Images:
    """Every pixel times the factor."""
    return (x * as_image_weight(factor)).clamp_(0, 1)


def adjust_contrast(x: Images, factor: PerSample) -> Images:
    """The distance of every pixel to the picture's mean brightness times the factor."""
    mean = x.mean(dim=(2, 3)) @ x.new_tensor(LUMA)
    return torch.lerp(as_image_weight(mean), x, as_image_weight(factor)).clamp_(0, 1)


def adjust_saturation(x: Images, factor: PerSample) -> Images:
    """The distance of every pixel to its own grey times the factor."""
    return torch.lerp(grey(x), x, as_image_weight(factor)).clamp_(0, 1)


def adjust_hue(x: Images, turn: PerSample) -> Images:
    """Turns every pixel's hue by a share of the colour circle; saturation and value of HSV stay."""
    red, green, blue = x.unbind(dim=1)
    value = x.amax(dim=1)
    chroma = value - x.amin(dim=1)
    # The hue in sixths of the circle, times chroma: red is at 0, green at 2, blue at 4.
    not_red = torch.where(
        value == green, (blue - red).add_(chroma, alpha=2), (red - green).add_(chroma, alpha=4)
    )
    hue = torch.where(value == red, green - blue, not_red) / chroma.clamp(min=1e-6)
    hue = hue.add_(6 * turn[:, None, None]).remainder_(6)
    # A channel is at `value` up to one sixth from its own hue, and a full chroma below from two sixths on.
    drop = torch.stack([2 - (hue - 3).abs_(), (hue - 2).abs_() - 1, (hue - 4).abs_() - 1], dim=1).clamp_(0, 1)
    return value[:, None] - drop.mul_(chroma[:, None])


ADJUSTMENTS: tuple[Callable[[Images, PerSample], Images], ...] = (
    adjust_brightness,
    adjust_contrast,
    adjust_saturation,
    adjust_hue,
)
"""In the order of the strengths that `jitter` takes."""


# Blur.


def gaussian_blur(x: Images, sigma: tuple[float, float], prob: float) -> Images:
    """Blurs a share `prob` of the pictures, each by its own U(*sigma) pixels."""
    return sometimes(x, prob, lambda chosen: blur(chosen, uniform((len(chosen),), *sigma).to(x)))


def blur(x: Images, sigma: PerSample) -> Images:
    """Gaussian blur over about a tenth of the side, an odd number of pixels and at least 3; edges reflect."""
    count, channels, height, width = x.shape
    taps = max(min(height, width) // 10 | 1, 3)
    offset = torch.arange(taps, device=x.device) - taps // 2
    kernel = (-((offset / sigma[:, None]) ** 2) / 2).softmax(dim=1)  # [B, taps]
    kernel = kernel.repeat_interleave(channels, dim=0)[:, None]
    # Pictures and channels are groups of one convolution, as each has a kernel of its own.
    lines = F.pad(x, (taps // 2,) * 4, mode="reflect").flatten(0, 1)[None]
    lines = F.conv2d(lines, kernel[:, :, None, :], groups=count * channels)
    return F.conv2d(lines, kernel[:, :, :, None], groups=count * channels).view_as(x)


# Chance.


def uniform(shape: tuple[int, ...], low: float, high: float) -> Float[Tensor, "..."]:
    """Numbers between low and high."""
    return torch.empty(shape).uniform_(low, high)


def sometimes(x: Images, prob: float, change: Callable[[Images], Images]) -> Images:
    """`change` applied to every picture with probability `prob`."""
    chosen = (torch.rand(len(x)) < prob).nonzero()[:, 0].to(x.device)
    if len(chosen) in (0, len(x)):
        return change(x) if len(chosen) else x
    return x.index_copy(0, chosen, change(x[chosen]))


__all__ = [
    "AUGMENTS",
    "Augment",
    "Boxes",
    "draw_boxes",
    "gaussian_blur",
    "jitter",
    "random_resized_crop",
    "solarize",
    "to_grey",
    "two_views",
    "view",
]
