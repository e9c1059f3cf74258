"""Entropic optimal transport between two sets of r feature vectors, in the log domain.

With costs M, K = -M / epsilon and both marginals log w = log(1 / r + 1e-8), the potentials start at 0 and are
updated in turns:

    f = log w - LSE_v(K + g),  g = log w - LSE_u(K + f),  plan P = exp(K + f + g)

until the sum over u of epsilon |change of f|, averaged over the batch, falls below a tolerance. g is updated
last, so the columns of P sum to 1 / r up to rounding. The rows do so only if the iteration converges; for
features that are not normalised, 100 rounds are often too few.
"""

import math
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Vectors: TypeAlias = Float[Tensor, "B C r"]
PositionPairs: TypeAlias = Float[Tensor, "B r r"]


def squared_distances(first: Vectors, second: Vectors) -> PositionPairs:
    """M_uv = ||a_u - a'_v||^2, summed from differences: a matrix product would lose small distances."""
    points = first.float().transpose(1, 2), second.float().transpose(1, 2)
    return torch.cdist(*points, compute_mode="donot_use_mm_for_euclid_dist").square()


@torch.no_grad()
def transport_plan(
    cost: PositionPairs, epsilon: float = 0.1, iterations: int = 100, tolerance: float = 0.1
) -> PositionPairs:
    """The plan P of each pair of sets, in float32 and without gradient.

    On a GPU, the test for convergence costs one synchronisation per round.
    """
    kernel = -cost.float() / epsilon
    log_weight = math.log(1 / cost.shape[-1] + 1e-8)
    rows, columns = torch.zeros_like(kernel[:, :, :1]), torch.zeros_like(kernel[:, :1])
    for _ in range(iterations):
        before = rows
        rows = log_weight - (kernel + columns).logsumexp(dim=2, keepdim=True)
        columns = log_weight - (kernel + rows).logsumexp(dim=1, keepdim=True)
        if epsilon * (rows - before).abs().sum(dim=1).mean() < tolerance:
            break
    return (kernel + rows + columns).exp()
