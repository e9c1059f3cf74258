"""Pseudo labels: online clusters of the keys, and a linear head that knows them (SAMix-C, after ODC)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.distributed import gather_constant
from samix.methods.supervised import linear_head
from samix.nn.clusters import ClusterMemory
from samix.pairing import Pairing
from samix.typing import Embeddings, Index, Labels, Logits, Scalar

LABELS = ("pseudo", "true")


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """Where pseudo labels come from."""

    count: int = 200
    """How many clusters."""
    momentum: float = 0.5
    """How far a picture's memory moves towards its newest key."""
    refresh_every: int = 10
    """Steps between two computations of all centroids."""
    min_size: int = 20
    """Clusters with fewer pictures are dissolved, and a large one is split."""
    labels: str = "pseudo"
    """pseudo, or true: the dataset's own labels instead, for the paper's ablation."""

    def __post_init__(self) -> None:
        if self.labels not in LABELS:
            raise ValueError(f"mixup.clusters.labels must be pseudo or true, got {self.labels!r}.")
        if not 0 < self.momentum <= 1:
            raise ValueError(f"mixup.clusters.momentum must lie in (0, 1], got {self.momentum}.")


class PseudoLabels(nn.Module):
    """The memory and its head."""

    truth: Tensor

    def __init__(self, pictures: int, dim: int, config: Clusters) -> None:
        super().__init__()
        self.config = config
        self.memory = ClusterMemory(
            pictures, config.count, dim,
            momentum=config.momentum, min_size=config.min_size, refresh_every=config.refresh_every,
        )  # fmt: skip
        self.head = linear_head(dim, config.count)
        self.register_buffer("truth", torch.zeros(pictures, dtype=torch.long), persistent=False)

    @torch.no_grad()
    def begin(self, features: Embeddings, truth: Labels, seed: int) -> None:
        """Clusters the pictures' first features, unless a checkpoint brought a memory along."""
        self.truth.copy_(truth)
        if not bool(self.memory.ready):
            self.memory.initialise(features, seed)

    def labels(self, index: Index) -> Labels:
        """The labels of these pictures, before the step changes them."""
        return self.truth[index] if self.config.labels == "true" else self.memory.labels_of(index)

    def logits(self, features: Embeddings) -> Logits:
        """The head as a fixed function: the Mixer learns through it, and it not from the Mixer (O5)."""
        return F.linear(features, self.head.weight.detach(), self.head.bias.detach())

    def head_loss(self, mixed: Embeddings, clean: Embeddings, y: Labels, pairing: Pairing) -> Scalar:
        """Mixup cross-entropy of mixtures plus cross-entropy of clean keys, both as weighted means (O6).

        Rare clusters weigh more; the features carry no gradient.
        """
        weight = self.memory.class_weights()
        log_p = F.log_softmax(self.head(mixed.detach()).float(), dim=1)
        y_j, lam = y[pairing.index], pairing.lam.expand(len(y))
        shares = torch.stack([lam * weight[y], (1 - lam) * weight[y_j]])
        mixing = torch.stack([log_p.gather(1, labels[:, None])[:, 0] for labels in (y, y_j)])
        plain = F.cross_entropy(self.head(clean.detach()).float(), y, weight=weight)
        return plain - (shares * mixing).sum() / shares.sum()

    @torch.no_grad()
    def update(self, index: Index, keys: Embeddings) -> None:
        """Moves the memory of this step's pictures, alike on all processes."""
        self.memory.update(gather_constant(index), gather_constant(keys))
