"""infoNCE for clean and mixed queries, in float32: one positive each, all other logits are the queue's.

A mixed query has two positives, and each stands in a softmax of its own with the queue, as in the paper and
in Un-Mix. i-Mix and MoCo v3 put both into one softmax (`in_batch.py`), which has another optimum.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from samix.pairing import Pairing
from samix.typing import Embeddings, PerSample, Scalar

Negatives = Float[Tensor, "K D"]
Alike = Bool[Tensor, "B K"]


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


def instance_bce(mixed: Embeddings, key: Embeddings, pairing: Pairing, tau: float = 0.2) -> Scalar:
    """-lam log p_(m,i) - (1 - lam) log p_(m,j) with p_(m,i) = e^(z_m.z_i / tau) / (e^(z_m.z_i / tau) +
    e^(z_m.z_j / tau)), SAMix Eq. (7): the local term of the instance-level loss."""
    mixed, key = mixed.float(), key.float()
    gap = (mixed * (key - key[pairing.index])).sum(dim=1) / tau
    softplus = torch.nn.functional.softplus
    return (pairing.lam * softplus(-gap) + (1 - pairing.lam) * softplus(gap)).mean()
