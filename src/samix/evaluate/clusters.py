"""How well clusters agree with the true classes, which clustering never saw."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor


class ClusterQuality(NamedTuple):
    """Agreement of clusters with classes; names of clusters do not matter."""

    nmi: float
    """Normalised mutual information in [0, 1]; 1 where clusters are the classes."""
    purity: float
    """Share of pictures whose class is the most frequent one of their cluster; 1 also for tiny clusters."""


def cluster_quality(labels: Int[Tensor, "N"], truth: Int[Tensor, "N"]) -> ClusterQuality:
    """Compares the clusters of N pictures with their true classes."""
    from sklearn.metrics import normalized_mutual_info_score

    if not len(labels):
        raise ValueError("the quality of clusters needs at least 1 picture, got none.")
    labels, truth = labels.cpu(), truth.cpu()
    nmi = normalized_mutual_info_score(truth.numpy(), labels.numpy())
    return ClusterQuality(float(nmi), _purity(labels, truth))


def _purity(labels: Tensor, truth: Tensor) -> float:
    clusters, cluster = labels.unique(return_inverse=True)
    classes, true_class = truth.unique(return_inverse=True)
    cells = cluster * len(classes) + true_class  # [N]
    table = torch.bincount(cells, minlength=len(clusters) * len(classes)).view(len(clusters), len(classes))
    return int(table.amax(dim=1).sum()) / len(labels)
