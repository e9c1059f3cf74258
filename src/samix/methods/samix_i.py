"""SAMix-I: a Mixer beside a self-supervised method, trained on instances (SAMix Eqs. (4), (7), (8)).

The Mixer learns through the method's momentum branch, encoder and projector, which takes no gradient. Methods
without one (SimCLR, SimSiam, SwAV) get a momentum copy for the Mixer alone, and those without a queue one of
keys. Differs from the official code: eta works, features and pictures are permuted alike (O4), and the mixed
image is of one view with targets from the other, as the paper says.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.distributed import gather_constant
from samix.losses import EtaBalanced, mask_loss
from samix.losses.info_nce import instance_bce, mixup_info_nce
from samix.methods.base import Losses
from samix.methods.samix import LearnedMixing, LearnedMixup, bernoulli, vital_signs
from samix.methods.self_mixing import Terms
from samix.methods.selfsup import Branch, Observed, SelfSupervised, Views, views_of
from samix.methods.supervised import part_of
from samix.mixups.mixed import blend, partners
from samix.nn.encoder import Encoder
from samix.nn.mixer import Mixer, MixerConfig
from samix.nn.momentum import momentum_copy, momentum_update
from samix.nn.queue import Queue
from samix.pairing import Pairing
from samix.schedules import held_cosine
from samix.typing import Embeddings, Images, Index, Labels, Maps


@dataclass(frozen=True, kw_only=True)
class InstanceMixup(LearnedMixup):
    """SAMix-I: the local term is Eq. (7), the global term Eq. (4)."""

    mixer: MixerConfig = field(default_factory=lambda: MixerConfig(dropout=0.1))
    adjust_margin: float = 0.1
    lam_margin: float = -1.0
    negatives: int = 4096
    """Keys that the Mixer's global term is contrasted with, where the method has no queue of its own."""


class SAMixI(LearnedMixing):
    """A self-supervised method, a Mixer and the frozen branch that the Mixer learns through."""

    settings: InstanceMixup

    def __init__(
        self,
        method: SelfSupervised,
        mixer: Mixer,
        settings: InstanceMixup | None = None,
        terms: Terms | None = None,
        *,
        dim: int,
    ) -> None:
        settings = settings or InstanceMixup()
        super().__init__(mixer, settings)
        self.method, self.terms = method, terms or Terms()
        self.copy = momentum_copy(method.branch) if method.momentum is None else None
        self.bank = Queue(settings.negatives, dim) if method.queue is None else None

    @property
    def frozen_branch(self) -> Branch:
        """The momentum branch: of the method, or the copy kept for the Mixer."""
        branch = self.copy if self.method.momentum is None else self.method.momentum
        assert branch is not None
        return branch

    @property
    def read_encoder(self) -> Encoder:
        """That of the momentum branch."""
        return self.frozen_branch.encoder

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """Both objectives of Eq. (5) for two views of a batch."""
        s, method, terms = self.settings, self.method, self.terms
        method.begin(progress)
        views = first, second = views_of(x, index)
        seen = method.observe(first, second, predicting=terms.base > 0)
        with torch.no_grad():
            z = self.maps(first)  # [B, C, h, w]

        # The encoder learns from fixed masks, Eq. (12); symmetric methods have both views mixed.
        pairing = terms.paired(s.draw(len(index), x.device))
        mixed = [self.mix(first, z, pairing, progress)]
        if len(terms.mixed_views(views, seen)) == 2:
            with torch.no_grad():
                mixed.append(self.mix(second, self.maps(second), pairing, progress))
        outputs = [method.predict(each.x) for each in mixed]
        encoder = terms.loss(method, views, seen, outputs, mixed)

        # The Mixer learns through the frozen branch, Eq. (13).
        losses = Losses(encoder, lam=pairing.lam)
        keys, count = self.keys(second, seen), part_of(len(index), s.mixer_fraction)
        if count > 1 and bernoulli(s.mixer_probability):
            parts = first[:count], z[:count], keys[:count], index[:count]
            losses = self.learn(losses, *parts, seen, progress)
        method.remember(seen)
        self.remember(index, keys)
        return losses

    @torch.no_grad()
    def keys(self, second: Images, seen: Observed) -> Embeddings:
        """The frozen branch's embeddings of the clean second view, not normalised."""
        return (self.frozen_branch(second) if seen.keys is None else seen.keys).float()

    def learn(
        self,
        losses: Losses,
        x: Images,
        z: Maps,
        keys: Embeddings,
        index: Index,
        seen: Observed,
        progress: float,
    ) -> Losses:
        """The losses with the Mixer's: l_+ + eta l_- on one mixture of x, plus beta times the mask loss."""
        s, size = self.settings, (x.shape[-2], x.shape[-1])
        pairing = s.draw(len(x), x.device)
        mask = self.mixer(z, pairing, size)
        embedding = self.frozen_branch(blend(x, partners(x, pairing.index), mask.to(x))).float()
        generation = self.generation(embedding, keys, pairing, index, seen)
        masks = mask_loss(mask, pairing.lam, s.mask_margin, s.variance_weight)
        mixer = generation.total + s.mask_weight(progress) * masks
        log = vital_signs(self.mixer, mask, pairing, generation, masks)
        head = self.head_loss(embedding.detach(), keys, pairing, index)
        return losses._replace(encoder=losses.encoder + head, mixer=mixer, log=log)

    def generation(
        self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, index: Index, seen: Observed
    ) -> EtaBalanced:
        """Eq. (8) on instances: is the mixture lam-smooth between its two keys, and far from all others?"""
        s, tau = self.settings, self.method.tau
        z_m, z = F.normalize(mixed, dim=1), F.normalize(keys, dim=1)
        local = instance_bce(z_m, z, pairing, tau)
        globally = mixup_info_nce(z_m, z, self.negatives(seen), pairing, tau)
        return EtaBalanced(local, globally, s.local * local + s.eta * globally)

    def negatives(self, seen: Observed) -> Tensor:
        """The method's queue, or the bank kept for the Mixer."""
        if seen.negatives is not None:
            return seen.negatives
        assert self.bank is not None
        return self.bank.read()

    def head_loss(self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, index: Index) -> Tensor:
        """What else learns from the Mixer's mixtures; on instances nothing."""
        return mixed.new_zeros(())

    @torch.no_grad()
    def remember(self, index: Index, keys: Embeddings) -> None:
        """What the wrapper keeps of a step."""
        self.push(keys)

    def push(self, keys: Embeddings, labels: Labels | None = None) -> None:
        """Puts the keys of all processes into the bank, where there is one."""
        if self.bank is not None:
            known = None if labels is None else gather_constant(labels)
            self.bank.push(F.normalize(gather_constant(keys), dim=1), known)

    def after_step(self, progress: float) -> None:
        """Projects gamma, and moves the copy that the Mixer learns through where it is our own."""
        s = self.settings
        self.mixer.project()
        self.method.after_step(progress)
        if self.copy is not None:
            momentum = held_cosine(progress, s.momentum, s.momentum_end, s.momentum_hold)
            momentum_update(self.copy, self.method.branch, momentum)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's parameters and the Mixer's; the frozen branch is not trained."""
        return self.method.parameter_groups() | {"mixer": list(self.mixer.parameters())}
