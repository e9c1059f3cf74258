"""GridMix as a grid of holes (GridMixup, no paper): the partner shows through holes of a regular grid.

A window that covers a share U(.5, 1) of the image, with height / width ~ U(.5, 2), is cut into square cells,
2 to 6 across. Each cell has a hole at its top left corner, with sides floor(cell sqrt(1 - lam)) bounded to
[1, cell - 1]. Label weight: 1 - hole pixels / HW, larger than lam if the window is smaller than the image.

Source: IlyaDobrynin/GridMixup, which OpenMixup calls GridMix. (The GridMix of Pattern Recognition 2021 is
another method.) Differs from that code: a window that is larger than the image is cut down to its sides.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from samix.core.checks import check_fields
from samix.core.devices import send
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy


class Grid(NamedTuple):
    """One window per lam and the side of its cells, in pixels."""

    top: Int[Tensor, "N"]
    left: Int[Tensor, "N"]
    height: Int[Tensor, "N"]
    width: Int[Tensor, "N"]
    cell: Int[Tensor, "N"]


def place_window(
    size: Size, area: Float[Tensor, "N"], aspect: Float[Tensor, "N"], place: Float[Tensor, "2 N"]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Top, left, height and width of windows with this share of the image and this height / width."""
    width = (area * (size[0] * size[1]) / aspect).sqrt().long()
    height = (width * aspect).long().clamp(1, size[0])  # from the width before it is cut down
    width = width.clamp(1, size[1])
    top, left = ((size[0] - height) * place[0]).long(), ((size[1] - width) * place[1]).long()
    return top, left, height, width


def in_holes(length: int, start: Tensor, extent: Tensor, cell: Tensor, hole: Tensor) -> Bool[Tensor, "N _"]:
    """True at pixels of [start, start + extent) that are among the first `hole` pixels of their cell."""
    offset = torch.arange(length, device=start.device)[None] - start[:, None]
    inside = (offset >= 0) & (offset < extent[:, None])
    return inside & (offset % cell[:, None] < hole[:, None])


def grid_mask(size: Size, grid: Grid, lam: Lam) -> Mask:
    """0 in the hole of each cell, 1 elsewhere."""
    top, left, height, width, cell = grid
    side = (cell * (1 - lam).sqrt()).long().clamp(min=1)
    hole = torch.where(lam < 1, torch.minimum(side, cell - 1), 0)
    rows, columns = in_holes(size[0], top, height, cell, hole), in_holes(size[1], left, width, cell, hole)
    return (~(rows[:, None, :, None] & columns[:, None, None])).float()


@dataclass(frozen=True, kw_only=True)
class GridMix(Policy):
    """The partner shows through a grid of square holes."""

    cells_min: int = 2
    """Fewest cells across the window."""
    cells_max: int = 6
    """Most cells across the window."""
    area: tuple[float, float] = (0.5, 1.0)
    """Range of the window's share of the image, before it is cut down to the image's sides."""
    aspect: tuple[float, float] = (0.5, 2.0)
    """Range of the window's height / width."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.cells_min <= self.cells_max:
            raise ValueError(
                "mixup.cells_min and mixup.cells_max must satisfy 1 <= cells_min <= cells_max, "
                f"got {self.cells_min} and {self.cells_max}."
            )
        rule = "must be a rising pair within (0, 1]"
        check_fields(self, "mixup", ["area"], lambda pair: 0 < pair[0] <= pair[1] <= 1, rule)
        rule = "must be a rising pair of positive numbers"
        check_fields(self, "mixup", ["aspect"], lambda pair: 0 < pair[0] <= pair[1] < math.inf, rule)

    def draw_grid(self, size: Size, count: int, generator: RandomSource = None) -> Grid:
        """Draws `count` windows, and how many cells lie across each."""
        area = torch.empty(count).uniform_(*self.area, generator=generator)
        aspect = torch.empty(count).uniform_(*self.aspect, generator=generator)
        window = place_window(size, area, aspect, torch.rand(2, count, generator=generator))
        cells = torch.randint(self.cells_min, self.cells_max + 1, (count,), generator=generator)
        return Grid(*window, cell=(window[3] + cells - 1) // cells)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One grid per lam, on the device and in the dtype of the images."""
        size, lam = x.shape[-2:], pairing.lam.detach()
        grid = self.draw_grid(size, len(lam), generator)
        return grid_mask(size, Grid(*(send(part, lam.device) for part in grid)), lam).to(x)
