"""Pretraining: a self-supervised run as a typed value, and how it becomes a model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn

from samix.data.ssl_views import AUGMENTS
from samix.engine.config import Plain, Training
from samix.errors import suggest
from samix.methods.byol import BYOLConfig
from samix.methods.cluster_mixing import ClusteredInterIntra, ClusteredPuzzleMix, ClusterMixing
from samix.methods.dacl import DACL, DACLConfig
from samix.methods.mochi import MoCHi, MoCHiConfig
from samix.methods.moco import MoCoV1, MoCoV2
from samix.methods.mocov3 import MoCoV3Config
from samix.methods.samix_c import ClusterMixup, SAMixC
from samix.methods.samix_i import InstanceMixup, SAMixI
from samix.methods.sdmp import SDMP, SDMPConfig
from samix.methods.self_mixing import SelfMixing, Terms
from samix.methods.selfsup import SelfSupervised
from samix.methods.simclr import SimCLRConfig
from samix.methods.simsiam import SimSiamConfig
from samix.methods.swav import SwAVConfig
from samix.mixups import MIXUPS, Mixup
from samix.typing import Stats

METHODS: dict[str, type[Any]] = {
    "simclr": SimCLRConfig,
    "moco-v1": MoCoV1,
    "moco-v2": MoCoV2,
    "moco-v3": MoCoV3Config,
    "byol": BYOLConfig,
    "simsiam": SimSiamConfig,
    "swav": SwAVConfig,
}
VIEW_POLICIES: dict[str, type[Any]] = {
    "plain": Plain,
    **MIXUPS,
    "samix-i": InstanceMixup,
    "samix-c": ClusterMixup,
    "inter-intra": ClusteredInterIntra,
    "puzzlemix-pl": ClusteredPuzzleMix,
    "dacl": DACLConfig,
    "mochi": MoCHiConfig,
    "sdmp": SDMPConfig,
}
"""How views may be mixed in pre-training."""


@dataclass(frozen=True, kw_only=True)
class Pretraining(Training):
    """Self-supervised training: a method, how views are made, and how they are mixed."""

    method: Any = field(default_factory=MoCoV2)
    """What is learned from views; its type is a name of METHODS."""
    mixup: Any = field(default_factory=Plain)
    """How views are mixed; its type is a name of VIEW_POLICIES."""
    terms: Terms = field(default_factory=Terms)
    """The shares of clean and mixed views in the objective."""
    augment: str = "small"
    """The pair of random views: a method's own (moco-v2, simclr, ...), or small for pictures of 32 px."""
    knn: int = 20
    """Neighbours that vote in the test during training; 0 leaves it out."""

    choices: ClassVar[dict[str, dict[str, type[Any]]]] = {"mixup": VIEW_POLICIES, "method": METHODS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.augment not in AUGMENTS:
            raise ValueError(f"unknown augment {suggest(self.augment, AUGMENTS)}")
        if self.knn < 0:
            raise ValueError(f"knn must not be negative, got {self.knn}.")
        if self.machine.accumulate > 1:
            raise ValueError(
                f"machine.accumulate is {self.machine.accumulate}, but parts of a batch do not see each "
                "other as negatives, so they do not add up to the whole. Use 1 with a smaller batch_size, "
                "or more devices."
            )


def build_pretraining(recipe: Pretraining, pictures: int, stats: Stats | None = None) -> nn.Module:
    """The model that the recipe describes, for a training set of so many pictures."""
    encoder = recipe.encoder.build(recipe.data.size)
    channels, features = encoder.probe(recipe.data.size)
    method: SelfSupervised = recipe.method.build(encoder, features)
    policy, terms = recipe.mixup, recipe.terms
    if isinstance(policy, Plain):
        return method
    if isinstance(policy, Mixup):
        return SelfMixing(method, policy, terms, stats)
    for kind, build in OTHERS.items():
        if isinstance(policy, kind):
            return build(method, policy)
    dim = embedding_width(method, recipe.data.size)
    if isinstance(policy, ClusteredInterIntra | ClusteredPuzzleMix):
        return ClusterMixing(method, policy.policy, policy.clusters, terms, stats, dim=dim, pictures=pictures)
    mixer = policy.mixer.build(channels)
    if isinstance(policy, ClusterMixup):
        return SAMixC(method, mixer, policy, terms, dim=dim, pictures=pictures)
    return SAMixI(method, mixer, policy, terms, dim=dim)


OTHERS: dict[type[Any], Callable[[SelfSupervised, Any], nn.Module]] = {
    DACLConfig: DACL,
    MoCHiConfig: MoCHi,
    SDMPConfig: SDMP,
}
"""Methods of their own, by the type of their settings."""


@torch.no_grad()
def embedding_width(method: SelfSupervised, size: int) -> int:
    """The width of the projector's output, found by running one black picture."""
    training = method.training
    method.eval()
    width = method.branch(torch.zeros(1, 3, size, size)).shape[1]
    method.train(training)
    return width
