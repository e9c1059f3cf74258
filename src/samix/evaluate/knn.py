"""Weighted k-nearest-neighbour accuracy of features, without any training (Wu et al., arXiv 1805.01978)."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import check_labels
from samix.core.shapes import Features


class KnnScore(NamedTuple):
    """Percentages."""

    top1: float
    top5: float


def knn_accuracy(
    train: Float[Tensor, "N D"],
    train_labels: Int[Tensor, "N"],
    test: Float[Tensor, "M D"],
    test_labels: Int[Tensor, "M"],
    *,
    classes: int,
    k: int = 200,
    tau: float = 0.07,
    chunk: int = 1000,
) -> KnnScore:
    """Every test picture asks its k nearest training pictures; each votes exp(cos / tau) for its label.

    k is at most the number of training pictures. A class without any vote is never a hit, so top-5 does
    not depend on how classes are numbered; of five classes or fewer all are among the five best. `chunk` test
    pictures are compared at a time.
    """
    for name, value in (("k", k), ("tau", tau), ("chunk", chunk)):
        if value <= 0:
            raise ValueError(f"{name} must be positive, got {value}.")
    for labels in (train_labels, test_labels):
        check_labels(labels, classes)
    bank = F.normalize(train.float(), dim=1)
    hits = torch.zeros(2, dtype=torch.long, device=test.device)
    for queries, labels in zip(test.split(chunk), test_labels.split(chunk), strict=True):
        votes = class_votes(F.normalize(queries.float(), dim=1), bank, train_labels, classes, k, tau)
        best = votes.topk(min(5, classes), dim=1)
        right = (best.indices == labels[:, None]) & (best.values > 0)  # [chunk, 5]
        hits += torch.stack([right[:, 0].sum(), right.sum()])
    top1, top5 = (100 * hits.double() / len(test)).tolist()
    return KnnScore(top1, 100.0 if classes <= 5 else top5)


def class_votes(
    queries: Features, bank: Float[Tensor, "N D"], labels: Int[Tensor, "N"], classes: int, k: int, tau: float
) -> Float[Tensor, "B K"]:
    """Sums of exp((cos - largest cos) / tau) per class: the votes up to one factor per row, always finite."""
    similarity, nearest = (queries @ bank.T).topk(min(k, len(bank)), dim=1)  # [B, k]
    weight = ((similarity - similarity[:, :1]) / tau).exp()
    return queries.new_zeros(len(queries), classes).scatter_add(1, labels[nearest], weight)
