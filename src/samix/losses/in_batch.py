"""Contrast against the keys of the batch: all positives stand in one softmax (MoCo v3, i-Mix, SimCLR)."""

import torch
from torch.nn import functional as F

from samix.pairing import Pairing
from samix.typing import Embeddings, PerSample, Scalar


def in_batch_nce_per_sample(
    query: Embeddings, keys: Embeddings, pairing: Pairing | None, tau: float
) -> PerSample:
    """-log softmax of key i among all keys; for mixed queries lam times that plus 1 - lam times key j's.

    Its optimum shares the softmax's mass lam : 1 - lam between the two positives.
    """
    log_p = F.log_softmax(query.float() @ keys.float().T / tau, dim=1)  # [B, B]
    rows = torch.arange(len(query), device=query.device)
    own = -log_p[rows, rows]
    if pairing is None:
        return own
    return pairing.lam * own - (1 - pairing.lam) * log_p[rows, pairing.index]


def in_batch_nce(query: Embeddings, keys: Embeddings, tau: float, pairing: Pairing | None = None) -> Scalar:
    """2 tau CE(q.k / tau), the contrastive loss of MoCo v3 (arXiv 2104.02057), clean or mixed."""
    return 2 * tau * in_batch_nce_per_sample(query, keys, pairing, tau).mean()


def nt_xent(
    first: Embeddings, second: Embeddings, tau: float = 0.1, pairing: Pairing | None = None
) -> Scalar:
    """NT-Xent of SimCLR (arXiv 2002.05709): every view against all 2 B - 1 others, means of both sides added.

    With a pairing, `first` are mixed images: lam times the loss with partners `second` plus 1 - lam times
    the loss with `second` permuted, per sample before the mean.
    """
    if pairing is None:
        return (_one_side(first, second, tau) + _one_side(second, first, tau)).mean()
    permuted = second[pairing.index]
    own = _one_side(first, second, tau) + _one_side(second, first, tau)
    other = _one_side(first, permuted, tau) + _one_side(permuted, first, tau)
    return (pairing.lam * own + (1 - pairing.lam) * other).mean()


def _one_side(anchor: Embeddings, other: Embeddings, tau: float) -> PerSample:
    """-log softmax of the other view among all other views and all same views but the anchor itself."""
    anchor, other = anchor.float(), other.float()
    across = anchor @ other.T / tau
    same = (anchor @ anchor.T / tau).fill_diagonal_(float("-inf"))
    return torch.cat([across, same], dim=1).logsumexp(dim=1) - across.diagonal()
