"""Pretraining: a self-supervised run as a typed value, and how it becomes a model."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from samix.contract import Context, MixupSettings, Model, Plain
from samix.core.checks import check_not_negative
from samix.core.shapes import Stats
from samix.core.small_crops import SmallCrops
from samix.core.words import suggest
from samix.data.ssl_views import AUGMENTS
from samix.engine.initial import load_initial
from samix.engine.pretrained import PretrainedMixup
from samix.engine.recipe import Recipe
from samix.learned import CLUSTERED, LEARNED_WITHOUT_LABELS
from samix.methods.around import AROUND, SelfMixing
from samix.methods.ssl import METHODS, MethodSettings, MoCoV2, SelfSupervised, Terms
from samix.mixups import MIXUPS
from samix.nn.zoo import find_spec

VIEW_POLICIES: dict[str, type[Any]] = {
    "plain": Plain,
    **MIXUPS,
    **LEARNED_WITHOUT_LABELS,
    **CLUSTERED,
    **AROUND,
    "samix-p": PretrainedMixup,
}
"""How views may be mixed in pre-training."""


@dataclass(frozen=True, kw_only=True)
class Pretraining(Recipe):
    """Self-supervised training: a method, how views are made, and how they are mixed."""

    method: MethodSettings = field(default_factory=MoCoV2)
    """What is learned from views; its type is a name of METHODS."""
    mixup: MixupSettings[SelfSupervised] = field(default_factory=Plain)
    """How views are mixed; its type is a name of VIEW_POLICIES."""
    terms: Terms = field(default_factory=Terms)
    """The shares of clean and mixed views in the objective."""
    augment: str = "small"
    """The pair of random views: a method's own (moco-v2, simclr, ...), or small for pictures of 32 px."""
    crops: SmallCrops = field(default_factory=SmallCrops)
    """Small crops beside the two views (SwAV)."""
    knn: int = 20
    """Neighbours that vote in the test during training; 0 leaves it out."""

    choices: ClassVar[dict[str, dict[str, type[Any]]]] = {"mixup": VIEW_POLICIES, "method": METHODS}
    command: ClassVar[str] = "pretrain"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.augment not in AUGMENTS:
            raise ValueError(f"unknown augment {suggest(self.augment, AUGMENTS)}")
        check_not_negative(self, "", "knn")
        check_views(self)
        if self.machine.accumulate > 1:
            raise ValueError(
                f"machine.accumulate is {self.machine.accumulate}, but parts of a batch do not see each "
                "other as negatives, so they do not add up to the whole. Use 1 with a smaller batch_size, "
                "or more devices."
            )

    def build(self, pictures: int, stats: Stats | None = None, *, initial: bool = True) -> Model:
        """A fresh model for a training set of `pictures` pictures; `stats` tells how they are normalised.

        The encoder has its `weights`, where it starts from some, unless `initial` says that all weights come
        from a checkpoint anyway.
        """
        encoder, size = self.encoder.build(self.data.size), self.data.size
        if initial:
            load_initial(encoder, self.encoder, size)
        channels, features = encoder.probe(size)
        method = self.method.build(encoder, features)
        method.terms = self.terms
        if self.crops.count and not method.takes_crops:
            raise ValueError(
                f"{type(method).__name__} learns from two views: leave crops.count at 0, or take swav as "
                "--method."
            )
        method.crops = self.crops
        return self.mixup.build(method, Context(channels, size, SelfMixing, stats, pictures))


def check_views(recipe: Pretraining) -> None:
    """Refuses what only supervised training does, its views and an average of a classifier, and small crops
    that cannot be."""
    data, crops = recipe.data, recipe.crops
    if crops.count and crops.size > data.size:
        raise ValueError(
            f"crops.size is {crops.size}, but small crops may not be larger than the views, whose data.size "
            f"is {data.size}."
        )
    if crops.count and find_spec(recipe.encoder.name).one_size:
        raise ValueError(
            f"{recipe.encoder.name} takes pictures of one size, so it cannot see small crops: leave "
            "crops.count at 0, or take a ResNet."
        )
    if data.rand_augment is not None or data.jitter or data.erasing:
        raise ValueError(
            "data.rand_augment, data.jitter and data.erasing change pictures of supervised training; the "
            f"views of pre-training are chosen by augment ({recipe.augment}). Leave them at null, 0 and 0."
        )
    if recipe.optimizer.average is not None:
        raise ValueError(
            f"optimizer.average is {recipe.optimizer.average}, but pre-training has no classifier whose "
            "weights it could average. Leave it at null."
        )
