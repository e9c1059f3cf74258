"""Contrastive losses, in float32: infoNCE against a queue, and against the keys of the batch.

With a queue, a mixed query has two positives, and each stands in a softmax of its own with the queue, as in
the paper and in Un-Mix. i-Mix, MoCo v3 and SimCLR put all positives of the batch into one softmax, which has
another optimum.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Parents
from samix.core.pairing import Pairing
from samix.core.shapes import Embeddings, Index, PerSample, Scalar

Negatives = Float[Tensor, "K D"]
AllRows = Float[Tensor, "N D"]
Alike = Bool[Tensor, "B K"]


def over_parents(loss: Callable[[Index], PerSample], parents: Parents) -> Scalar:
    """mean_i sum_p share_ip loss_i(positive = parent p); for a pair lam l(m, i) + (1 - lam) l(m, j)."""
    parts = [loss(positive) for positive in parents.index.unbind(dim=1)]
    return (parents.share * torch.stack(parts, dim=1)).sum(dim=1).mean()


def info_nce_per_sample(
    query: Embeddings, key: Embeddings, negatives: Negatives, tau: float, alike: Alike | None = None
) -> PerSample:
    """-log exp(q.k / tau) / (exp(q.k / tau) + sum_n exp(q.n / tau)) for every query.

    `alike` marks negatives that are none, because they share the key's label.
    """
    query, key, negatives = query.float(), key.float(), negatives.float()
    positive = (query * key).sum(dim=1, keepdim=True) / tau  # [B, 1]
    others = query @ negatives.T / tau  # [B, K]
    if alike is not None:
        others = others.masked_fill(alike, float("-inf"))
    return torch.cat([positive, others], dim=1).logsumexp(dim=1) - positive[:, 0]


def info_nce(query: Embeddings, key: Embeddings, negatives: Negatives, tau: float = 0.2) -> Scalar:
    """SAMix Eq. (2), the positive in the sum with the K negatives (E4); mean over the batch."""
    return info_nce_per_sample(query, key, negatives, tau).mean()


def mixup_info_nce(
    mixed: Embeddings,
    key: Embeddings,
    negatives: Negatives,
    pairing: Pairing,
    tau: float = 0.2,
    alike: Alike | None = None,
) -> Scalar:
    """lam NCE(z_m, z_i) + (1 - lam) NCE(z_m, z_j), SAMix Eq. (4); lam weighs each sample before the mean."""
    other = None if alike is None else alike[pairing.index]
    first = info_nce_per_sample(mixed, key, negatives, tau, alike)
    second = info_nce_per_sample(mixed, key[pairing.index], negatives, tau, other)
    return (pairing.lam * first + (1 - pairing.lam) * second).mean()


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
    `positive` of the second, each against all other rows of both views.

    `place` says where this process's rows stand among the rows of all processes.
    """
    first, second = first.float(), second.float()
    return _one_side(first, second, place, positive, tau) + _one_side(second, first, positive, place, tau)


def _one_side(same: AllRows, other: AllRows, place: Index, positive: Index, tau: float) -> PerSample:
    """-log softmax of the other view's `positive` among all other views and all same views but itself."""
    anchor = same[place]
    across = anchor @ other.T / tau
    among = (anchor @ same.T / tau).scatter(1, place[:, None], float("-inf"))
    return torch.cat([across, among], dim=1).logsumexp(dim=1) - across.gather(1, positive[:, None])[:, 0]
