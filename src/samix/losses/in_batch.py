"""Contrast against the keys of the batch: all positives stand in one softmax (MoCo v3, i-Mix, SimCLR).

`place` says where this process's rows stand among the rows of all processes.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.typing import Embeddings, Index, PerSample

AllRows = Float[Tensor, "N D"]


def in_batch_nce_per_sample(query: Embeddings, keys: AllRows, positive: Index, tau: float) -> PerSample:
    """-log softmax of key `positive` among all keys.

    Weighed over the parents of a mixed image, its optimum shares the softmax's mass lam : 1 - lam.
    """
    log_p = F.log_softmax(query.float() @ keys.float().T / tau, dim=1)  # [B, N]
    return -log_p.gather(1, positive[:, None])[:, 0]


def nt_xent_per_sample(
    first: AllRows, second: AllRows, place: Index, positive: Index, tau: float
) -> PerSample:
    """NT-Xent of SimCLR (arXiv 2002.05709), both sides added: row `place` of the first view and row
    `positive` of the second, each against all other rows of both views."""
    first, second = first.float(), second.float()
    return _one_side(first, second, place, positive, tau) + _one_side(second, first, positive, place, tau)


def _one_side(same: AllRows, other: AllRows, place: Index, positive: Index, tau: float) -> PerSample:
    """-log softmax of the other view's `positive` among all other views and all same views but itself."""
    anchor = same[place]
    across = anchor @ other.T / tau
    among = (anchor @ same.T / tau).scatter(1, place[:, None], float("-inf"))
    return torch.cat([across, among], dim=1).logsumexp(dim=1) - across.gather(1, positive[:, None])[:, 0]
