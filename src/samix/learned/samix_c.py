"""SAMix-C: the Mixer learns on clusters instead of instances (Eqs. (6), (8) with pseudo labels)."""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

from samix.contract import Context
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing
from samix.core.renamed import OLD_NAMES, accept_old_names
from samix.core.shapes import Embeddings, Images, Index, Labels, Maps, Scalar
from samix.learned.losses import eta_balanced
from samix.learned.mixer import Mixer
from samix.learned.pseudo import Clusters, KeepsClusters, PseudoLabels
from samix.learned.samix import Judgement
from samix.learned.samix_i import InstanceMixup, SAMixI
from samix.losses.contrastive import mixup_info_nce
from samix.methods.ssl.base import Branch, Observed, SelfSupervised, Terms
from samix.nn.key_queue import Queue


@accept_old_names(OLD_NAMES)
@dataclass(frozen=True, kw_only=True)
class ClusterMixup(InstanceMixup):
    """SAMix-C: the local term is pBCE, the global term mixup cross-entropy, of pseudo labels."""

    clusters: Clusters = field(default_factory=Clusters)
    """Where the labels come from."""
    instance: float = 0.0
    """Weight of the instances' global term beside the clusters' (ablation)."""
    drop_alike: bool = False
    """Leave negatives with the positive's label out of the instances' term (ablation)."""
    auto_label: bool = False
    """The encoder sees plain Mixup of pairs with one pseudo label (the official code's auto_label)."""

    def build(self, method: SelfSupervised, context: Context) -> "SAMixC":
        """SAMix-I's parts, and a memory of the training pictures' clusters."""
        dim, mixer = method.embedding_width(context.size), self.mixer.build(context.channels)
        return SAMixC(method, mixer, self, dim=dim, pictures=context.pictures)


class SAMixC(KeepsClusters, SAMixI):
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

    def mix_pairs(self, x: Images, z: Maps, pairing: Pairing, progress: float, index: Index) -> Mixed:
        """Images under learned masks; where asked for, under the constant mask lam within a cluster."""
        mixed = super().mix_pairs(x, z, pairing, progress, index)
        if not self.settings.auto_label:
            return mixed
        y, lam = self.pseudo.labels(index), pairing.lam.to(x).view(-1, 1, 1, 1)
        mask = torch.where((y == y[pairing.index]).view(-1, 1, 1, 1), lam, mixed.mask)
        return Mixed(blend_pairs(x, pairing.index, mask), mask, pairing)

    def judge_embeddings(
        self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, index: Index, seen: Observed
    ) -> Judgement:
        """Eq. (8) on clusters, plus the instances' global term where an ablation asks for it.

        The cluster head has a loss of its own, which reaches it alone.
        """
        s, y = self.settings, self.pseudo.labels(index)
        found = eta_balanced(self.pseudo.logits(mixed), y, pairing, s.eta, s.local)
        if s.instance:
            instance = self.instance_loss(mixed, keys, pairing, y, seen)
            found = found._replace(total=found.total + s.instance * instance)
        return Judgement(found, self.pseudo.head_loss(mixed.detach(), keys, y, pairing))

    def instance_loss(
        self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, y: Labels, seen: Observed
    ) -> Scalar:
        """Mixup infoNCE, Eq. (4), where asked for without the negatives that share the positive's label."""
        z_m, z, alike, negatives = F.normalize(mixed, dim=1), F.normalize(keys, dim=1), None, seen.negatives
        if self.settings.drop_alike or negatives is None:
            assert self.bank is not None
            negatives = self.bank.read()
        if self.settings.drop_alike:
            alike = y[:, None] == self.bank.read_labels()[None]  # type: ignore[union-attr]
        return mixup_info_nce(z_m, z, negatives, pairing, self.method.tau, alike)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """As ever, and the cluster head's parameters, which ODC trains without momentum."""
        return super().parameter_groups() | {"head": list(self.pseudo.head.parameters())}

    @torch.no_grad()
    def remember(self, index: Index, keys: Embeddings) -> None:
        """Moves the clusters and, where there is one, the bank with its labels."""
        labels: Labels = self.pseudo.labels(index)
        self.pseudo.update(index, keys)
        self.push(keys, labels)

    @property
    def clustered_branch(self) -> Branch:
        """The frozen branch."""
        return self.frozen_copy
