"""CutMix (arXiv 1905.04899): a random box of the partner, pasted at the same place.

The sides of the box are floor(H sqrt(1 - lam)) and floor(W sqrt(1 - lam)), its centre is a uniform pixel. As
in the original code it is cut off at the border, so the label weight is the uncovered area, not lam.

The original code halves the sides and rounds down, so that an odd side loses a pixel (`box="paper"`, also
torchvision's and OpenMixup's). timm keeps odd sides whole since 1.0.29; that is the default, because the area
then lies nearer to 1 - lam, before the border cuts it off and after (docs/drop_in.md has the numbers).
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from samix.core.checks import check_fields, check_words
from samix.core.devices import at_hand, send, widen
from samix.core.mixed import Mixed, copy_partners
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy

BoxName: TypeAlias = Literal["whole", "paper"]


class Box(NamedTuple):
    """One box per lam, [N] each: rows [top, bottom) and columns [left, right), before the border cuts."""

    top: Tensor
    bottom: Tensor
    left: Tensor
    right: Tensor


class Cut(NamedTuple):
    """The part of an image that one box covers, as Python's numbers."""

    rows: slice
    columns: slice
    rest: float
    """How much of the image's area it leaves."""


Whole = TypeVar("Whole", int, Tensor)


def interval(centre: Whole, side: Whole, box: BoxName = "paper") -> tuple[Whole, Whole]:
    """[centre - side // 2, centre + side // 2), or for a whole box `side` pixels from there on."""
    half = side // 2
    start = centre - half
    return start, start + side if box == "whole" else centre + half


def box_around(size: Size, row: Tensor, column: Tensor, lam: Lam, box: BoxName = "paper") -> Box:
    """Boxes of area about (1 - lam) H W, centred on the given pixels, where lam lies."""
    cut = (1 - widen(lam.detach())).sqrt()
    row, column = send(row, lam.device), send(column, lam.device)
    rows = interval(row, (size[0] * cut).long(), box)
    return Box(*rows, *interval(column, (size[1] * cut).long(), box))


def draw_box(size: Size, lam: Lam, generator: RandomSource = None, box: BoxName = "paper") -> Box:
    """Draws boxes whose centres are uniform pixels."""
    row = torch.randint(size[0], (len(lam),), generator=generator)
    column = torch.randint(size[1], (len(lam),), generator=generator)
    return box_around(size, row, column, lam, box)


def draw_one_box(size: Size, lam: float, generator: RandomSource, box: BoxName) -> tuple[int, int, int, int]:
    """What `draw_box` draws for one lam, in Python's numbers, which cost less than tensors of one element."""
    row = int(torch.randint(size[0], (1,), generator=generator))
    column = int(torch.randint(size[1], (1,), generator=generator))
    cut = math.sqrt(1 - lam)
    return *interval(row, int(size[0] * cut), box), *interval(column, int(size[1] * cut), box)


def cut_at_border(size: Size, top: int, bottom: int, left: int, right: int) -> Cut:
    """What of an image lies in rows [top, bottom) and columns [left, right)."""
    top, left, bottom, right = max(top, 0), max(left, 0), min(bottom, size[0]), min(right, size[1])
    whole, part = size[0] * size[1], max(bottom - top, 0) * max(right - left, 0)
    return Cut(slice(top, bottom), slice(left, right), (whole - part) / whole)


def draw_minmax_box(size: Size, lam: Lam, minmax: tuple[float, float], generator: RandomSource = None) -> Box:
    """Draws boxes with sides of U(min, max) of the image's, wholly inside of it; empty where lam is 1."""
    mixed = lam.detach() < 1
    places: list[Tensor] = []
    for length in size:
        least = int(length * minmax[0])
        most = max(int(length * minmax[1]), least + 1)
        side = send(torch.randint(least, most, (len(lam),), generator=generator), lam.device) * mixed
        place = send(torch.rand(len(lam), generator=generator), lam.device)
        start = (place * (length - side + 1)).long()
        places += [start, start + side]
    return Box(*places)


def outside(length: int, start: Tensor, end: Tensor) -> Tensor:
    """[N, length]: True where a pixel lies outside [start, end)."""
    pixels = torch.arange(length, device=start.device)[None]
    return (pixels < start[:, None]) | (pixels >= end[:, None])


def box_mask(size: Size, box: Box) -> Mask:
    """1 outside each box, 0 inside."""
    keep_rows = outside(size[0], box.top, box.bottom)
    keep_columns = outside(size[1], box.left, box.right)
    return (keep_rows[:, None, :, None] | keep_columns[:, None, None, :]).float()


def cutmix_mask(size: Size, lam: Lam, generator: RandomSource = None, box: BoxName = "paper") -> Mask:
    """1 outside a random box of area about (1 - lam) H W, 0 inside: one box per lam."""
    return box_mask(size, draw_box(size, lam, generator, box))


@dataclass(frozen=True, kw_only=True)
class CutMix(Policy):
    """A box of the partner replaces a box of the first image."""

    box: BoxName = "whole"
    """Odd sides of the box stay whole (as in timm), or lose a pixel (the "paper"'s code, torchvision)."""
    minmax: tuple[float, float] | None = None
    """Range of the box's sides in units of the image's instead of lam; the box then lies inside (timm)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_words(self, "mixup")
        rule = "must be a rising pair within [0, 1]"
        check_fields(self, "mixup", ["minmax"], lambda pair: 0 <= pair[0] <= pair[1] <= 1, rule)

    @property
    def lam_weighs_labels(self) -> bool:
        """Not where `minmax` decides how large the box is."""
        return self.minmax is None

    def draw_box(self, size: Size, lam: Lam, generator: RandomSource = None) -> Box:
        """One box per lam."""
        if self.minmax is not None:
            return draw_minmax_box(size, lam, self.minmax, generator)
        return draw_box(size, lam, generator, self.box)

    def draw_cut(self, size: Size, lam: Lam, generator: RandomSource = None) -> Cut:
        """The part that the box of a single lam covers, where lam may be looked at."""
        if self.minmax is not None:
            return cut_at_border(size, *(int(edge) for edge in self.draw_box(size, lam, generator)))
        return cut_at_border(size, *draw_one_box(size, lam.item(), generator, self.box))

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One box per lam, on the device and in the dtype of the images."""
        size = x.shape[-2:]
        return box_mask(size, self.draw_box(size, pairing.lam, generator)).to(x)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Blends by the mask; if the batch shares one box of known place, only that is copied (faster)."""
        if pairing.lam.shape != (1,) or pairing.lam.device != x.device or not at_hand(x):
            return super().mix(x, pairing, hints, generator)
        size = x.shape[-2:]
        rows, columns, rest = self.draw_cut(size, pairing.lam, generator)
        mask, mixed = x.new_ones(1, 1, *size), x.clone()
        mask[:, :, rows, columns] = 0
        copy_partners(x[:, :, rows, columns], pairing.index, mixed[:, :, rows, columns])
        return Mixed(mixed, mask, Pairing(torch.full((1,), rest), pairing.index))
