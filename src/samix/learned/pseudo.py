"""Pseudo labels: online clusters of the keys, and a linear head that knows them (SAMix-C, after ODC)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.checks import check_positive_share, check_words
from samix.core.distributed import broadcast, gather_constant
from samix.core.pairing import Pairing
from samix.core.seeds import fold, seeded
from samix.core.shapes import Embeddings, Index, Labels, Logits, Scalar
from samix.learned.clusters import ClusterMemory
from samix.methods.supervised import linear_head


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
    labels: Literal["pseudo", "deepcluster", "true"] = "pseudo"
    """pseudo (ODC: clusters move at every step), deepcluster (k-means of all pictures once an epoch), or
    true: the dataset's own labels, for the paper's ablation."""

    def __post_init__(self) -> None:
        check_words(self, "mixup.clusters")
        check_positive_share(self, "mixup.clusters", "momentum")


class PseudoLabels(nn.Module):
    """The memory and its head."""

    truth: Tensor

    def __init__(self, pictures: int, dim: int, config: Clusters) -> None:
        super().__init__()
        self.config = config
        self.memory = ClusterMemory(
            pictures, config.count, dim,
            momentum=config.momentum, min_size=config.min_size, refresh_every=config.refresh_every,
            every_epoch=config.labels == "deepcluster",
        )  # fmt: skip
        self.head = linear_head(dim, config.count)
        self.register_buffer("truth", torch.zeros(pictures, dtype=torch.long), persistent=False)

    @torch.no_grad()
    def begin(self, features: Embeddings, truth: Labels, seed: int) -> None:
        """Clusters the pictures' first features, unless a checkpoint brought a memory along.

        k-means may round differently on every process: the first one's clusters count.
        """
        if self.config.labels == "true" and len(truth.unique()) < 2:
            raise ValueError(
                "mixup.clusters.labels is 'true', but the training pictures have no labels. Take pseudo or "
                "deepcluster, or a set with labels."
            )
        self.truth.copy_(truth)
        if not bool(self.memory.ready):
            self.memory.initialise(features, seed)
        self.agree()

    def agree(self) -> None:
        """Gives every process the first one's clusters."""
        for buffer in self.memory.buffers():
            broadcast(buffer)

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

    @torch.no_grad()
    def after_step(self) -> None:
        """At the end of an epoch of DeepCluster new labels, in a new order, which a fresh head must learn."""
        if not self.memory.is_due:
            return
        seed = fold(int(self.memory.steps), "clusters")
        self.memory.cluster(seed)
        self.agree()
        with seeded(seed):
            fresh = linear_head(self.head.in_features, self.head.out_features)
        self.head.load_state_dict(fresh.state_dict())


class KeepsClusters:
    """What models with pseudo labels have in common (`contract.Clustered`)."""

    pseudo: PseudoLabels

    @property
    def clustered_branch(self) -> nn.Module:
        """The network whose embeddings are clustered."""
        raise TypeError(f"{type(self).__name__} must define clustered_branch.")

    def begin_clusters(self, embed: Callable[[nn.Module], Embeddings], truth: Labels, seed: int) -> None:
        """Clusters the training pictures, unless a checkpoint brought clusters along."""
        memory = self.pseudo.memory
        features = memory.features if bool(memory.ready) else embed(self.clustered_branch)
        self.pseudo.begin(features, truth, seed)

    def after_step(self, progress: float) -> None:
        """What the model does, then the clusters."""
        super().after_step(progress)  # type: ignore[misc]
        self.pseudo.after_step()

    def cluster_labels(self) -> Labels:
        """The cluster of every training picture."""
        return self.pseudo.memory.labels
