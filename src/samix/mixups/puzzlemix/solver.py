"""Minimises PuzzleMix's energy for a whole batch in tensor operations, close to the exact graph cut.

Between 0 and 1 the energy is a convex quadratic. Along one share s_b it is the parabola through its values at
0, 1/2 and 1, whose lowest point is a linear function of the neighbours:

    s_b = (sum_b' w_bb' s_b' + (q - 3 p) / 2) / (sum_b' w_bb' + 2 (q - p)),
    p = cost(1/2) - cost(0), q = cost(1) - cost(1/2).

So: (1) minimise over [0, 1] by red-black successive over-relaxation; (2) round to the nearest share;
(3) iterated conditional modes (ICM): the same step, rounded (of three points of a parabola, the best is the
nearest to its lowest point), which never raises the energy. Grids of 2 x 2 blocks are enumerated instead.

The solver is our own; the official code runs alpha-beta swaps picture by picture. `benchmarks/puzzle_gap.py`
measures the gap to the exact minimum and the time.
"""

from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.mixups.puzzlemix.energy import Energy, PerBlock

OVER_RELAXATION = 1.5
RELAXING_ROUNDS = 4
ICM_ROUNDS = 2

Grid: TypeAlias = Float[Tensor, "n m B"]
"""Twice the shares, so that labels are 0, 1, 2; batch last, so that neighbours are contiguous views."""


class Steps(NamedTuple):
    """The lowest point of each block's parabola: a constant, and the weights of its four neighbours."""

    constant: Grid
    up: Grid
    down: Grid
    left: Grid
    right: Grid


def make_steps(energy: Energy) -> Steps:
    """The lowest point of every block's parabola as a linear function of its neighbours."""
    unary, below, beside = (part.movedim(-3, -1).contiguous() for part in energy)
    p, q = unary.diff(dim=0)
    up, down = F.pad(below, (0, 0, 0, 0, 1, 0)), F.pad(below, (0, 0, 0, 0, 0, 1))
    left, right = F.pad(beside, (0, 0, 1, 0)), F.pad(beside, (0, 0, 0, 1))
    scale = 1 / (up + down + left + right + 2 * (q - p))
    return Steps((q - 3 * p) * scale, up * scale, down * scale, left * scale, right * scale)


def descend(steps: Steps, start: Grid, rounds: int, step: float = 1.0, discrete: bool = False) -> Grid:
    """Runs `rounds` of coordinate descent: black blocks of a checkerboard first, then white ones.

    `step` > 1 goes beyond the lowest point (over-relaxation); `discrete` rounds to whole labels.
    """
    padded = F.pad(start, (0, 0, 1, 1, 1, 1))
    labels = padded[1:-1, 1:-1]
    above, below, before, after = padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]
    black, white = checkerboard(*start.shape[:2], start.device)
    for movable in (step * black.to(start), step * white.to(start)) * rounds:
        lowest = torch.addcmul(steps.constant, steps.up, above).addcmul_(steps.down, below)
        lowest.addcmul_(steps.left, before).addcmul_(steps.right, after)
        if discrete:
            lowest.round_()
        labels.lerp_(lowest, movable).clamp_(0, 2)
    return labels


@lru_cache(maxsize=16)
def checkerboard(rows: int, columns: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """1 on black blocks and 1 on white blocks, [n, m, 1] each."""
    white = ((torch.arange(rows)[:, None] + torch.arange(columns)) % 2)[..., None].float().to(device)
    return 1 - white, white


@lru_cache(maxsize=16)
def all_labelings(rows: int, columns: int, device: torch.device) -> Tensor:
    """Every possible labeling of a grid, [3^(n m), 1, n, m]."""
    labels = torch.tensor(list(product(range(3), repeat=rows * columns)), device=device)
    return labels.view(-1, 1, rows, columns)


def solve_by_enumeration(energy: Energy) -> PerBlock:
    """The exact minimum, found by trying all labelings; only for a few blocks."""
    labels = all_labelings(*energy.unary.shape[2:], energy.unary.device)
    chosen, shares = F.one_hot(labels, 3).movedim(-1, 1).to(energy.unary), labels.to(energy.unary) / 2
    # Sums instead of matrix products, which autocast would round.
    costs = (chosen * energy.unary).sum(dim=(1, 3, 4))  # [labelings, B]
    costs = costs + (shares.diff(dim=2).square() * energy.down).sum(dim=(2, 3))
    costs = costs + (shares.diff(dim=3).square() * energy.right).sum(dim=(2, 3))
    return shares[costs.argmin(dim=0), 0]


@torch.no_grad()
def solve(energy: Energy) -> PerBlock:
    """Shares in {0, 1/2, 1} of low energy for every picture; exact for 2 x 2 blocks."""
    if energy.unary[0, 0].numel() <= 4:
        return solve_by_enumeration(energy)
    steps = make_steps(energy)
    relaxed = descend(steps, torch.ones_like(steps.constant), RELAXING_ROUNDS, step=OVER_RELAXATION)
    labels = descend(steps, relaxed.round(), ICM_ROUNDS, discrete=True)
    return labels.movedim(-1, 0) / 2
