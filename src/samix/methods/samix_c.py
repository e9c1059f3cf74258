"""SAMix-C: the Mixer learns on clusters instead of instances (SAMix Eqs. (6), (8) with pseudo labels)."""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from samix.losses import EtaBalanced, eta_balanced
from samix.losses.info_nce import mixup_info_nce
from samix.methods.pseudo import Clusters, PseudoLabels
from samix.methods.samix_i import InstanceMixup, SAMixI
from samix.methods.self_mixing import Terms
from samix.methods.selfsup import Observed, SelfSupervised
from samix.nn.mixer import Mixer
from samix.nn.queue import Queue
from samix.pairing import Pairing
from samix.typing import Embeddings, Index, Labels, Scalar


@dataclass(frozen=True, kw_only=True)
class ClusterMixup(InstanceMixup):
    """SAMix-C: the local term is pBCE, the global term mixup cross-entropy, of pseudo labels."""

    clusters: Clusters = field(default_factory=Clusters)
    """Where the labels come from."""
    instance: float = 0.0
    """Weight of the instances' global term beside the clusters' (ablation)."""
    drop_alike: bool = False
    """Leave negatives with the positive's label out of the instances' term (ablation)."""


class SAMixC(SAMixI):
    """SAMix-I whose generation loss is that of a cluster head on the frozen branch's embeddings."""

    settings: ClusterMixup

    def __init__(
        self,
        method: SelfSupervised,
        mixer: Mixer,
        settings: ClusterMixup | None = None,
        terms: Terms | None = None,
        *,
        dim: int,
        pictures: int,
    ) -> None:
        settings = settings or ClusterMixup()
        super().__init__(method, mixer, settings, terms, dim=dim)
        self.pseudo = PseudoLabels(pictures, dim, settings.clusters)
        if settings.drop_alike and self.bank is None:
            self.bank = Queue(settings.negatives, dim)  # the method's queue knows no labels

    def generation(
        self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, index: Index, seen: Observed
    ) -> EtaBalanced:
        """Eq. (8) on clusters, plus the instances' global term where an ablation asks for it."""
        s, y = self.settings, self.pseudo.labels(index)
        found = eta_balanced(self.pseudo.logits(mixed), y, pairing, s.eta, s.local)
        if not s.instance:
            return found
        z_m, z, alike, negatives = F.normalize(mixed, dim=1), F.normalize(keys, dim=1), None, seen.negatives
        if s.drop_alike or negatives is None:
            assert self.bank is not None
            negatives = self.bank.read()
        if s.drop_alike:
            alike = y[:, None] == self.bank.read_labels()[None]  # type: ignore[union-attr]
        instance = mixup_info_nce(z_m, z, negatives, pairing, self.method.tau, alike)
        return found._replace(total=found.total + s.instance * instance)

    def head_loss(self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, index: Index) -> Scalar:
        """The cluster head's own loss; it reaches the head alone."""
        return self.pseudo.head_loss(mixed, keys, self.pseudo.labels(index), pairing)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """As ever, and the cluster head's parameters, which ODC trains without momentum."""
        return super().parameter_groups() | {"head": list(self.pseudo.head.parameters())}

    @torch.no_grad()
    def remember(self, index: Index, keys: Embeddings) -> None:
        """Moves the clusters and, where there is one, the bank with its labels."""
        labels: Labels = self.pseudo.labels(index)
        self.pseudo.update(index, keys)
        self.push(keys, labels)
