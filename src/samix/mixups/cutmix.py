"""CutMix (arXiv 1905.04899): a random box of the partner, pasted at the same place.

The sides of the box are floor(H sqrt(1 - lam)) and floor(W sqrt(1 - lam)), its centre is a uniform pixel. As
in the original code it is cut off at the border, so the label weight is the uncovered area, not lam.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy, mean_of


def outside_interval(length: int, centre: Tensor, side: Tensor) -> Tensor:
    """[N, length]: True where a pixel lies outside [centre - side // 2, centre + side // 2)."""
    pixels = torch.arange(length)[None]
    half = (side // 2)[:, None]
    return (pixels < centre[:, None] - half) | (pixels >= centre[:, None] + half)


class Box(NamedTuple):
    """One box per lam: its centre and its sides, [N] each, before it is cut off at the border."""

    row: Tensor
    column: Tensor
    height: Tensor
    width: Tensor


def box_around(size: Size, row: Tensor, column: Tensor, lam: Lam) -> Box:
    """Boxes of area about (1 - lam) H W, centred on the given pixels."""
    cut = (1 - lam.detach().cpu().double()).sqrt()
    return Box(row, column, (size[0] * cut).long(), (size[1] * cut).long())


def draw_box(size: Size, lam: Lam, generator: RandomSource = None) -> Box:
    """Draws boxes whose centres are uniform pixels."""
    row = torch.randint(size[0], (len(lam),), generator=generator)
    column = torch.randint(size[1], (len(lam),), generator=generator)
    return box_around(size, row, column, lam)


def box_mask(size: Size, box: Box) -> Mask:
    """1 outside each box, 0 inside."""
    keep_rows = outside_interval(size[0], box.row, box.height)
    keep_columns = outside_interval(size[1], box.column, box.width)
    return (keep_rows[:, None, :, None] | keep_columns[:, None, None, :]).float()


def clipped_slice(centre: Tensor, side: Tensor, length: int) -> slice:
    """The pixels [centre - side // 2, centre + side // 2) of one box, cut off at the border."""
    middle, half = int(centre), int(side) // 2
    return slice(max(middle - half, 0), min(middle + half, length))


def cutmix_mask(size: Size, lam: Lam, generator: RandomSource = None) -> Mask:
    """1 outside a random box of area about (1 - lam) H W, 0 inside: one box per lam."""
    return box_mask(size, draw_box(size, lam, generator))


@dataclass(frozen=True, kw_only=True)
class CutMix(Policy):
    """A box of the partner replaces a box of the first image."""

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One box per lam, on the device and in the dtype of the images."""
        return cutmix_mask(x.shape[-2:], pairing.lam, generator).to(x)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Blends by the mask; if the whole batch shares one box, only the box is copied (faster)."""
        if len(pairing.lam) > 1:
            return super().mix(x, pairing, hints, generator)
        height, width = x.shape[-2:]
        box = draw_box((height, width), pairing.lam, generator)
        rows = clipped_slice(box.row, box.height, height)
        columns = clipped_slice(box.column, box.width, width)
        mask, mixed = x.new_ones(1, 1, height, width), x.clone()
        mask[..., rows, columns] = 0
        mixed[..., rows, columns] = x[..., rows, columns].index_select(0, pairing.index)
        return Mixed(mixed, mask, Pairing(mean_of(mask), pairing.index))
