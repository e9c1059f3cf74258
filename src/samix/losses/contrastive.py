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
    """mean_i sum_p share_ip loss_i(positive = parent p); for a pair lam l(m, i) + (1 - lam) l(m, j).

    >>> share = torch.tensor([[0.75, 0.25], [0.75, 0.25]])
    >>> parents = Parents(index=torch.tensor([[0, 1], [1, 0]]), share=share)
    >>> loss = torch.tensor([[0.0, 4.0], [4.0, 0.0]])  # of mixture i against image j
    >>> over_parents(lambda positive: loss[torch.arange(2), positive], parents).item()
    1.0
    """
    parts = [loss(positive) for positive in parents.index.unbind(dim=1)]
    return (parents.share * torch.stack(parts, dim=1)).sum(dim=1).mean()


def info_nce_per_sample(
    query: Embeddings, key: Embeddings, negatives: Negatives, tau: float, alike: Alike | None = None
) -> PerSample:
    """-log exp(q.k / tau) / (exp(q.k / tau) + sum_n exp(q.n / tau)) for every query.

    `alike` marks negatives that are none, because they share the key's label.

    Where the three negatives are as near as the key, the loss is that of a guess among four:

    >>> query = torch.tensor([[1.0, 0.0]])
    >>> round(info_nce_per_sample(query, query, query.expand(3, 2), tau=0.2).exp().item(), 3)
    4.0
    >>> alike = torch.tensor([[True, True, False]])
    >>> round(info_nce_per_sample(query, query, query.expand(3, 2), 0.2, alike).exp().item(), 3)
    2.0
    """
    query, key, negatives = query.float(), key.float(), negatives.float()
    positive = (query * key).sum(dim=1, keepdim=True) / tau  # [B, 1]
    others = query @ negatives.T / tau  # [B, K]
    if alike is not None:
        others = others.masked_fill(alike, float("-inf"))
    return torch.cat([positive, others], dim=1).logsumexp(dim=1) - positive[:, 0]


def info_nce(query: Embeddings, key: Embeddings, negatives: Negatives, tau: float = 0.2) -> Scalar:
    """SAMix Eq. (2), the positive in the sum with the K negatives (E4); mean over the batch.

    >>> key, negatives = torch.eye(2), -torch.eye(2)
    >>> round(info_nce(key, key, negatives, tau=0.1).item(), 3)  # found
    0.0
    >>> round(info_nce(-key, key, negatives, tau=0.1).item(), 3)  # as far as can be: 2 / tau
    20.0
    """
    return info_nce_per_sample(query, key, negatives, tau).mean()


def mixup_info_nce(
    mixed: Embeddings,
    key: Embeddings,
    negatives: Negatives,
    pairing: Pairing,
    tau: float = 0.2,
    alike: Alike | None = None,
) -> Scalar:
    """lam NCE(z_m, z_i) + (1 - lam) NCE(z_m, z_j), SAMix Eq. (4); lam weighs each sample before the mean.

    A mixture that looks like its first image alone costs more than one that is near to both:

    >>> key, negatives, both = torch.eye(2), -torch.eye(2), torch.full((2, 2), 0.5**0.5)
    >>> pairing = Pairing(lam=torch.tensor([0.5]), index=torch.tensor([1, 0]))
    >>> [round(mixup_info_nce(mixed, key, negatives, pairing, tau=0.1).item(), 2) for mixed in (key, both)]
    [0.35, 0.0]
    """
    other = None if alike is None else alike[pairing.index]
    first = info_nce_per_sample(mixed, key, negatives, tau, alike)
    second = info_nce_per_sample(mixed, key[pairing.index], negatives, tau, other)
    return (pairing.lam * first + (1 - pairing.lam) * second).mean()


def in_batch_nce_per_sample(query: Embeddings, keys: AllRows, positive: Index, tau: float) -> PerSample:
    """-log softmax of key `positive` among all keys.

    Weighed over the parents of a mixed image, its optimum shares the softmax's mass lam : 1 - lam.

    >>> query, keys = torch.tensor([[0.75, 0.25]] * 2).log(), torch.eye(2)  # mass 3/4 on key 0
    >>> loss = in_batch_nce_per_sample(query, keys, torch.tensor([0, 1]), tau=1.0)
    >>> [round(mass, 4) for mass in (-loss).exp().tolist()]
    [0.75, 0.25]
    """
    log_p = F.log_softmax(query.float() @ keys.float().T / tau, dim=1)  # [B, N]
    return -log_p.gather(1, positive[:, None])[:, 0]


def nt_xent_per_sample(
    first: AllRows, second: AllRows, place: Index, positive: Index, tau: float
) -> PerSample:
    """NT-Xent of SimCLR (arXiv 2002.05709), both sides added: row `place` of the first view and row
    `positive` of the second, each against all other rows of both views.

    `place` says where this process's rows stand among the rows of all processes.

    >>> views, own = torch.eye(2), torch.tensor([0, 1])
    >>> right = nt_xent_per_sample(views, views, own, positive=own, tau=0.1)
    >>> wrong = nt_xent_per_sample(views, views, own, positive=own.flip(0), tau=0.1)  # 1 / tau each side
    >>> round(right[0].item(), 2), round(wrong[0].item(), 2)
    (0.0, 20.0)
    """
    first, second = first.float(), second.float()
    return _one_side(first, second, place, positive, tau) + _one_side(second, first, positive, place, tau)


def _one_side(same: AllRows, other: AllRows, place: Index, positive: Index, tau: float) -> PerSample:
    """-log softmax of the other view's `positive` among all other views and all same views but itself."""
    anchor = same[place]
    across = anchor @ other.T / tau
    among = (anchor @ same.T / tau).scatter(1, place[:, None], float("-inf"))
    return torch.cat([across, among], dim=1).logsumexp(dim=1) - across.gather(1, positive[:, None])[:, 0]
