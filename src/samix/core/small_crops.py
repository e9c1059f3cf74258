"""Small crops beside the two views (SwAV's multi-crop), packed so that a batch stays one tensor.

They travel as tiles of canvases that are as large as a view: `pack` lays them out, `unpack` takes them up.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from samix.core.checks import check_at_least, check_not_negative, check_positive_share


@dataclass(frozen=True, kw_only=True)
class SmallCrops:
    """Small crops beside the two views; SwAV's multi-crop has six."""

    count: int = 0
    """How many of every picture; 0: the two views alone."""
    size: int = 96
    """Their side in pixels."""
    min_scale: float = 0.05
    """Smallest share of the picture's area that they may take."""
    max_scale: float = 0.14
    """Largest share of the picture's area that they may take."""

    def __post_init__(self) -> None:
        check_not_negative(self, "crops", "count")
        check_at_least(8, self, "crops", "size")
        check_positive_share(self, "crops", "min_scale", "max_scale")
        if self.max_scale < self.min_scale:
            raise ValueError(
                f"crops.max_scale must be at least crops.min_scale ({self.min_scale}), got {self.max_scale}."
            )


def pack(crops: list[Tensor], size: int) -> Tensor:
    """Crops [B, 3, s, s] laid out in canvases [C B, 3, size, size], so many a side as fit.

    >>> pack([torch.ones(2, 3, 4, 4)] * 6, size=9).shape  # two a side, so four of six in the first canvas
    torch.Size([4, 3, 9, 9])
    """
    batch, channels, _, side = crops[0].shape
    each = size // side
    shape = (-(-len(crops) // each**2), batch, channels, size, size)
    canvases = torch.zeros(shape, dtype=crops[0].dtype, device=crops[0].device)
    for crop, place in zip(crops, tiles(len(crops), side, each), strict=True):
        canvases[place] = crop
    return canvases.flatten(0, 1)


def unpack(canvases: Tensor, small: SmallCrops, batch: int) -> list[Tensor]:
    """The crops [B, 3, s, s] that canvases [C B, 3, size, size] hold."""
    each = canvases.shape[-1] // small.size
    expected = -(-small.count // each**2) * batch
    if len(canvases) != expected:
        raise ValueError(
            f"{small.count} small crops of {batch} pictures come in {expected} canvases of "
            f"{canvases.shape[-1]} px behind the two views, got {len(canvases)}."
        )
    rows = canvases.unflatten(0, (-1, batch))
    return [rows[place] for place in tiles(small.count, small.size, each)]


def tiles(count: int, side: int, each: int) -> list[tuple[int, slice, slice, slice, slice]]:
    """Where each crop lies in canvases [C, B, 3, size, size]."""
    places = []
    for number in range(count):
        canvas, tile = divmod(number, each**2)
        top, left = (side * line for line in divmod(tile, each))
        everything = slice(None)
        places.append((canvas, everything, everything, slice(top, top + side), slice(left, left + side)))
    return places
