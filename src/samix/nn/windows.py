"""Attention in windows, as in Swin: what every position of the map receives, put back in its place."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.shapes import AttentionMap, Size


class Windows(NamedTuple):
    """How a block cuts its map into windows."""

    size: Size
    shift: Size
    """By how much the map is rolled up and to the left before it is cut."""


def block_of(network: nn.Module, layer: nn.Module) -> nn.Module | None:
    """The block whose attention a layer is, if it cuts its map into windows (`window_size`, `shift_size`)."""
    for module in network.modules():
        if getattr(module, "attn", None) is layer and hasattr(module, "shift_size"):
            return module
    return None


def windows_of(block: Any) -> Windows:
    """What the block says of its windows."""
    return Windows(*(pair_of(side) for side in (block.window_size, block.shift_size)))


def pair_of(side: Any) -> Size:
    """Height and width, of a number or of two.

    >>> pair_of(7), pair_of((4, 8))
    ((7, 7), (4, 8))
    """
    return (side, side) if isinstance(side, int) else (int(side[0]), int(side[1]))


def received(weights: Float[Tensor, "N heads q k"]) -> Float[Tensor, "N k"]:
    """The attention that every position receives: mean over heads and over those who ask."""
    return weights.float().mean(dim=(1, 2))


def join_windows(values: Float[Tensor, "N k"], grid: Size, windows: Windows) -> AttentionMap:
    """Values of windows [B n, h w] as maps [B, H, W] of this grid.

    Windows come in reading order; a grid that they do not fit was padded below and on the right, and the
    padding is cut off; then the roll is undone.
    """
    (height, width), (rows, columns) = (
        windows.size,
        (-(-side // step) for side, step in zip(grid, windows.size, strict=True)),
    )
    maps = values.view(-1, rows, columns, height, width).transpose(2, 3).flatten(3).flatten(1, 2)
    maps = maps[:, : grid[0], : grid[1]]
    return torch.roll(maps, shifts=windows.shift, dims=(1, 2))
