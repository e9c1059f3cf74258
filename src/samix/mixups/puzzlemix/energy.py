"""The energy that PuzzleMix minimises (arXiv 2009.06962), for every picture of a batch at once.

A picture is cut into n x n blocks, and block b shows the share s_b in {0, 1/2, 1} of the first image. With
the saliency u of the blocks (sum 1 per picture), beta' = beta / (16 n) and all pairs bb' of neighbours:

    E(s) = sum_b [s_b U_i(b) + (1 - s_b) U_j(b) + prior(s_b)] + sum_bb' (beta' + kappa_bb') (s_b - s_b')^2
    prior(s) = -(eta / n^2) log Binomial(2 (1 - s); 2, 1 - lam)

U_i, the cost of showing x_i, is the saliency u_j that is lost, plus half of the jumps in colour at those
borders of the block that x_i takes part in; kappa is what a change of source adds to the jumps. Couplings are
positive (kappa >= -gamma beta') and the costs of a block are convex in s, so a graph cut finds the exact
minimum (`benchmarks/puzzle_cut.py`), and descent comes close to it (`solver`).

Differs from the official code: it adds 1e-8 to the binomial; here lam is kept 1e-4 away from 0 and 1, which
bounds the prior alike and stays convex.
"""

from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.shapes import Images, Index, Lam, PerSample, Saliency

POOL = 4
"""Colours are compared after averaging over squares with sides of at most 4 pixels."""
MARGIN = 1e-4
"""The prior keeps lam this far from 0 and 1."""

PerBlock: TypeAlias = Float[Tensor, "B n m"]
"""One number for every block: its share of the first image, or its saliency."""


class Energy(NamedTuple):
    """The costs of shares 0, 1/2 and 1 in a grid of n x m blocks."""

    unary: Float[Tensor, "3 B n m"]
    """The cost of each share at each block; convex in the share."""
    down: Float[Tensor, "B n-1 m"]
    """Weight of (s_b - s_b')^2 between a block and the one below; positive."""
    right: Float[Tensor, "B n m-1"]
    """The same for the block to the right."""


class Weights(NamedTuple):
    """The constants of the energy."""

    beta: float = 1.2
    """Weight of smooth shares."""
    gamma: float = 0.5
    """Weight of smooth colours, relative to beta."""
    eta: float = 0.2
    """Weight of the prior, which lam sets."""


def largest_divisor(side: int, most: int) -> int:
    """The largest divisor of `side` that is at most `most`."""
    return max(divisor for divisor in range(1, min(side, most) + 1) if side % divisor == 0)


def block_saliency(saliency: Saliency, grid: tuple[int, int]) -> PerBlock:
    """The saliency of each block; sums to 1 per picture, 0 everywhere for a map of zeros."""
    pooled = F.adaptive_avg_pool2d(saliency.float(), grid)
    return pooled / pooled.sum(dim=(1, 2), keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)


def border_costs(
    pair: Float[Tensor, "2 B c h w"], blocks: int
) -> tuple[Float[Tensor, "2 B n n"], Float[Tensor, "B n-1 n"]]:
    """Splits the jumps in colour between vertical neighbours: (costs of x_i and x_j per block, kappa)."""
    side = pair.shape[-2] // blocks
    last, first = pair[..., side - 1 : -1 : side, :], pair[..., side::side, :]
    jumps = (last[:, None] - first[None]).abs().mean(dim=3)  # [above, below, B, n - 1, w]
    jumps = jumps.unflatten(-1, (blocks, -1)).mean(dim=-1)
    costs = F.pad(jumps.mean(dim=1), (0, 0, 0, 1)) + F.pad(jumps.mean(dim=0), (0, 0, 1, 0))
    return costs, (jumps[0, 1] + jumps[1, 0] - jumps[0, 0] - jumps[1, 1]) / 2


def log_prior(lam: Lam) -> Float[Tensor, "3 #B"]:
    """log Binomial(2 (1 - s); 2, 1 - lam) for s = 0, 1/2, 1."""
    lam = lam.float().clamp(MARGIN, 1 - MARGIN)
    return torch.stack([(1 - lam) ** 2, 2 * lam * (1 - lam), lam**2]).log()


@torch.no_grad()
def puzzle_energy(
    pixels: Images, saliency: Saliency, index: Index, lam: Lam, blocks: int, weights: Weights
) -> Energy:
    """The energy of mixing every picture (pixels in [0, 1]) with its partner in blocks x blocks blocks."""
    pool = [largest_divisor(side // blocks, POOL) for side in pixels.shape[-2:]]
    pooled = F.avg_pool2d(pixels.float(), pool)
    pair = torch.stack([pooled, pooled[index]])
    vertical, down = border_costs(pair, blocks)
    horizontal, right = border_costs(pair.mT, blocks)

    beta = weights.beta / (16 * blocks)
    lost = block_saliency(saliency, (blocks, blocks))
    lost = torch.stack([lost[index], lost])  # what is lost by showing x_i, and by showing x_j
    cost_i, cost_j = lost + beta * weights.gamma * (vertical + horizontal.mT)
    prior = -weights.eta / blocks**2 * log_prior(lam)
    return Energy(
        torch.stack([cost_j, (cost_i + cost_j) / 2, cost_i]) + prior[:, :, None, None],
        beta + beta * weights.gamma * down,
        beta + beta * weights.gamma * right.mT,
    )


def energy_of(energy: Energy, shares: PerBlock) -> PerSample:
    """E(s) of every picture."""
    labels = (2 * shares).round().long()[None]
    unary = energy.unary.gather(0, labels)[0].sum(dim=(1, 2))
    down = (energy.down * shares.diff(dim=1) ** 2).sum(dim=(1, 2))
    return unary + down + (energy.right * shares.diff(dim=2) ** 2).sum(dim=(1, 2))
