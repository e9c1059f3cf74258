"""Moves the salient blocks of an image to where the mask shows the image (PuzzleMix, arXiv 2009.06962).

Moving source block p to target block r costs eps C_pr - u(p) z_r: C is the squared distance (with sides of
the picture = 1), u the saliency, z_r = 1 where the mask shows the image. In every round each source asks for
its cheapest target, each target accepts the cheapest source that asks at a negative cost, and refused sources
ask for another target in the next round. As u(p) does not depend on r, a source asks for shown targets in the
order of their distance, so ranks of distances replace the N x N cost matrix of each picture.

Differs from the official code: a target that no source won keeps its own block instead of turning black.
"""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import in_format_of
from samix.mixups.puzzlemix.energy import PerBlock

Plan: TypeAlias = Int[Tensor, "B N"]
"""Which block of the image is shown in each block, in reading order."""


class Neighbours(NamedTuple):
    """For each of the N blocks of a grid, all blocks from the nearest (itself) to the farthest."""

    rank: Int[Tensor, "N N"]
    """rank[p, r]: how many blocks are nearer to p than r; equally near ones in reading order."""
    block: Int[Tensor, "N N+1"]
    """The block of each rank; rank N stands for no block."""
    distance: Float[Tensor, "N N+1"]
    """The squared distance of each rank, with both sides of the grid 1 long; infinite for rank N."""


@lru_cache(maxsize=16)
def neighbours(rows: int, columns: int, device: torch.device) -> Neighbours:
    """The neighbours of a grid; cached, because they are the same for every picture."""
    sides = (torch.linspace(0, 1, side, dtype=torch.float64) for side in (rows, columns))
    places = torch.cartesian_prod(*sides)
    distance = (places[:, None] - places[None]).square().sum(dim=2)
    distance, block = distance.mul(1e9).round().sort(dim=1, stable=True)  # rounded, so that equal ones tie
    rank = block.argsort(dim=1).to(torch.int16 if len(places) < 2**15 else torch.int32)
    distance = F.pad(distance / 1e9, (0, 1), value=torch.inf).float()
    return Neighbours(rank.to(device), F.pad(block, (0, 1)).to(device), distance.to(device))


@torch.no_grad()
def transport_plan(saliency: PerBlock, shown: PerBlock, epsilon: float = 0.8) -> Plan:
    """The source of every target after max(n, m) rounds; `shown` > 0 where the mask shows the image."""
    rows, columns = saliency.shape[1:]
    rank, block, distance = neighbours(rows, columns, saliency.device)
    value, no_block = saliency.flatten(1), rows * columns
    sources = torch.arange(no_block, device=saliency.device).expand_as(value)
    hidden = (shown.flatten(1) <= 0).to(rank) * no_block
    open_ranks = torch.maximum(rank, hidden[:, None])  # [B, source, target]; rank N: must not be asked
    for _ in range(max(rows, columns)):
        nearest = open_ranks.amin(dim=2).long()
        entry = nearest + sources * (no_block + 1)
        target, cost = block.take(entry), epsilon * distance.take(entry) - value
        cheapest = torch.zeros_like(cost).scatter_reduce(1, target, cost, "amin").gather(1, target)
        # Among equal costs the first source in reading order wins.
        bidder = sources.where((cost == cheapest) & (cost < 0), no_block)
        winner = torch.full_like(sources, no_block).scatter_reduce(1, target, bidder, "amin")
        lost = winner.gather(1, target) != sources
        open_ranks.scatter_(2, target[..., None], nearest.masked_fill(lost, no_block).to(rank)[..., None])
    return winner.where(winner < no_block, sources)


def move_blocks(planes: Tensor, plan: Plan, grid: tuple[int, int]) -> Tensor:
    """Cuts planes [B, K, H, W] into blocks and replaces each by the block that the plan names."""
    rows, columns = grid
    blocks = planes.unflatten(3, (columns, -1)).unflatten(2, (rows, -1))  # [B, K, n, h, m, w]
    blocks = blocks.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)  # [B, N, K, h, w]
    batch = torch.arange(len(plan), device=plan.device)[:, None]
    moved = blocks[batch, plan].unflatten(1, (rows, columns))
    return in_format_of(planes, moved.permute(0, 3, 1, 4, 2, 5).reshape(planes.shape))
