"""SAMix-I: a Mixer beside a self-supervised method, trained on instances (Eqs. (4), (7), (8)).

The Mixer learns through the method's momentum branch, encoder and projector, which takes no gradient. Methods
without one (SimCLR, SimSiam, SwAV) get a momentum copy for the Mixer alone, and those without a queue one of
keys. The mixed image is of one view with targets from the other, as the paper says.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.contract import Context, Losses
from samix.core.distributed import gather_constant
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.renamed import OLD_NAMES, accept_old_names
from samix.core.shapes import Embeddings, Images, Index, Labels, Maps
from samix.learned.losses import eta_balanced_instances
from samix.learned.mixer import Adjusting, Mixer, MixerConfig
from samix.learned.samix import Judgement, LearnedMixing, MixerTraining
from samix.learned.wrapping import check_network, warn_of_one_place
from samix.methods.around.self_mixing import SelfMixing
from samix.methods.ssl.base import (
    Branch,
    MethodSettings,
    Observed,
    SelfSupervised,
    Terms,
    Views,
)
from samix.methods.ssl.moco import MoCoV2
from samix.nn.conventions import count_prefix_tokens
from samix.nn.encoder import Encoder, momentum_copy
from samix.nn.key_queue import Queue


@accept_old_names(OLD_NAMES)
@dataclass(frozen=True, kw_only=True)
class InstanceMixup(MixerTraining):
    """SAMix-I: the local term is Eq. (7), the global term Eq. (4)."""

    mixer: MixerConfig = field(default_factory=lambda: MixerConfig(dropout=0.1))
    adjusting: Adjusting = field(default_factory=lambda: Adjusting(margin=0.1, lam_margin=-1.0))
    negatives: int = 4096
    """Keys that the Mixer's global term is contrasted with, where the method has no queue of its own."""
    cross_view: bool = False
    """Partners of the encoder's mixtures, and their keys, come from the other view (the official code's
    cross_view_gen), for MoCo v1 and v2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.speed.online_maps:
            raise ValueError(
                "mixup.speed.online_maps must be false without labels: few methods run the encoder on clean "
                "views. It is for mixups beside a classifier's clean branch."
            )

    def build(self, method: SelfSupervised, context: Context) -> "SAMixI":
        """A fresh Mixer and what the method lacks of a momentum branch and a queue, beside the method."""
        dim = method.embedding_width(context.size)
        return SAMixI(method, self.mixer.build(context.channels), self, dim=dim)


class SAMixI(LearnedMixing):
    """A self-supervised method, a Mixer and the frozen branch that the Mixer learns through."""

    method: SelfSupervised
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
        super().__init__(method, mixer, settings)
        self.terms = terms or method.terms
        if settings.cross_view:
            check_crossable(method, self.terms)
        self.copy = momentum_copy(method.branch) if method.momentum is None else None
        self.bank = Queue(settings.negatives, dim) if method.queue is None else None

    @classmethod
    def wrap(
        cls,
        network: nn.Module,
        layer: str,
        method: MethodSettings | None = None,
        settings: InstanceMixup | None = None,
        *,
        size: int = 32,
        pictures: int = 0,
        channels_last: bool = False,
        prefix_tokens: int | None = None,
        norm: str | None = None,
    ) -> "SAMixI":
        """SAMix-I around a network of your own (images -> features); the Mixer reads the map of `layer`.

        `method` is what is learned from two views, by default MoCo v2. `settings` of type `ClusterMixup` make
        it SAMix-C: tell the number of training `pictures`, and call `begin_clusters` before the first step.
        The rest is as in `SAMix.wrap`.

        >>> network = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        >>> model = SAMixI.wrap(network, layer="1", method=MoCoV2(queue=16, dim=8, hidden=8))
        >>> views = torch.rand(8, 3, 32, 32)  # all first views of four pictures, then all second ones
        >>> losses = model(views, torch.arange(4), progress=0.0)
        >>> losses.encoder.requires_grad, losses.mixer.requires_grad
        (True, True)
        """
        check_network(network)
        tokens = count_prefix_tokens(network) if prefix_tokens is None else prefix_tokens
        encoder = Encoder(network, layer, channels_last=channels_last, prefix_tokens=tokens, norm=norm)
        channels, features = encoder.probe(size)
        warn_of_one_place(encoder, size)
        learner = (method or MoCoV2()).build(encoder, features).to(encoder.black(size).device)
        context = Context(channels, size, SelfMixing, pictures=pictures)
        return (settings or InstanceMixup()).build(learner, context).to(encoder.black(size).device)

    @property
    def frozen_copy(self) -> Branch:
        """The momentum branch: of the method, or the copy kept for the Mixer."""
        branch = self.copy if self.method.momentum is None else self.method.momentum
        assert branch is not None
        return branch

    @property
    def followed(self) -> Branch | None:
        """The online branch, where the copy is our own."""
        return None if self.copy is None else self.method.branch

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """Both objectives of Eq. (5) for two views of a batch."""
        method, terms = self.method, self.terms
        method.begin(progress)
        views = first, second = method.take(x, index)
        seen = terms.observe(method, views)
        with torch.no_grad():
            z = self.maps(first)  # [B, C, h, w]

        # The encoder learns from fixed masks, Eq. (12); symmetric methods have both views mixed.
        pairing = terms.paired(self.settings.draw(len(index), x.device))
        count = len(terms.mixed_views(views, seen))
        with torch.no_grad():
            mixed = self.mix_views(views, z, pairing, progress, index, count)
        outputs = [method.predict(each.x) for each in mixed]
        against = across_views(method, views, seen) if self.settings.cross_view else seen
        losses = Losses(terms.loss(method, views, against, outputs, mixed), lam=pairing.lam)

        # The Mixer learns through the frozen branch, Eq. (13).
        keys = self.keys(second, seen)

        def judge(x_mix: Images, pairing: Pairing) -> Judgement:
            count = len(x_mix)
            return self.judge(x_mix, pairing, keys[:count], index[:count], seen)

        losses = self.mixer_step(losses, first, z, progress, judge)
        method.remember(seen)
        self.remember(index, keys)
        return losses

    def mix_views(
        self,
        views: tuple[Images, Images],
        z: Maps,
        pairing: Pairing,
        progress: float,
        index: Index,
        count: int,
    ) -> list[Mixed]:
        """The first `count` views mixed for the encoder, whose first view has the maps z.

        Each has masks of its own maps; across views the partners, and what the masks see of them, are of the
        other view.
        """
        if self.settings.cross_view:
            both, z = torch.cat(views), torch.cat([z, self.maps(views[1])])
            crossed = self.mix_pairs(both, z, across(pairing), progress, torch.cat([index, index]))
            return [crossed.first(len(index))]
        maps = [z] if count == 1 else [z, self.maps(views[1])]
        return [
            self.mix_pairs(view, own, pairing, progress, index)
            for view, own in zip(views, maps, strict=False)
        ]

    def mix_pairs(self, x: Images, z: Maps, pairing: Pairing, progress: float, index: Index) -> Mixed:
        """Images, which are the training pictures of that index, under learned masks."""
        return self.mix(x, z, pairing, progress)

    @torch.no_grad()
    def keys(self, second: Images, seen: Observed) -> Embeddings:
        """The frozen branch's embeddings of the clean second view, not normalised."""
        return (self.frozen_copy(second) if seen.keys is None else seen.keys).float()

    def judge(
        self, x_mix: Images, pairing: Pairing, keys: Embeddings, index: Index, seen: Observed
    ) -> Judgement:
        """Eq. (8) as the frozen branch sees mixtures, whose first images have these keys and positions."""
        return self.judge_embeddings(self.frozen_copy(x_mix).float(), keys, pairing, index, seen)

    def judge_embeddings(
        self, mixed: Embeddings, keys: Embeddings, pairing: Pairing, index: Index, seen: Observed
    ) -> Judgement:
        """Eq. (8) on instances: is the mixture lam-smooth between its two keys, and far from all others?"""
        s, tau, negatives = self.settings, self.method.tau, self.negatives(seen)
        z_m, z = F.normalize(mixed, dim=1), F.normalize(keys, dim=1)
        return Judgement(eta_balanced_instances(z_m, z, negatives, pairing, tau, s.eta, s.local))

    def negatives(self, seen: Observed) -> Tensor:
        """The method's queue, or the bank kept for the Mixer."""
        if seen.negatives is not None:
            return seen.negatives
        assert self.bank is not None
        return self.bank.read()

    @torch.no_grad()
    def remember(self, index: Index, keys: Embeddings) -> None:
        """What the wrapper keeps of a step."""
        self.push(keys)

    def push(self, keys: Embeddings, labels: Labels | None = None) -> None:
        """Puts the keys of all processes into the bank, where there is one."""
        if self.bank is not None:
            known = None if labels is None else gather_constant(labels)
            self.bank.push(F.normalize(gather_constant(keys), dim=1), known)


def across(pairing: Pairing) -> Pairing:
    """The pairing of B images for both views in one batch of 2 B, each image's partner in the other view.

    >>> across(Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))).index.tolist()
    [3, 2, 1, 0]
    """
    lam, index = pairing
    return Pairing(lam.expand(len(index)).repeat(2), torch.cat([index + len(index), index]))


def across_views(method: SelfSupervised, views: tuple[Images, Images], seen: Observed) -> Observed:
    """What was observed, with the mixed view's own keys behind those of the other one: partners' targets."""
    same = method.same_view_targets(*views, seen)
    both = zip(seen.targets, same, strict=True)
    return seen._replace(targets=tuple(torch.cat([target, own]) for target, own in both))


def check_crossable(method: SelfSupervised, terms: Terms) -> None:
    """Partners of the other view have keys of their own where each positive has a softmax of its own."""
    if method.queue is None:
        raise ValueError(
            f"mixup.cross_view mixes across views for methods with a queue, which {type(method).__name__} is "
            "not. Choose MoCo v1 or v2 as --method."
        )
    if terms.same_view or terms.shared:
        raise ValueError(
            "mixup.cross_view has targets of both views: leave terms.same_view and terms.shared false."
        )
