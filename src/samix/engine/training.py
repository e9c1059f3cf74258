"""Training: a supervised run as a typed value, and how it becomes a model."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from samix.contract import Context, MixupSettings, Model, Plain
from samix.core.checks import check_at_least
from samix.core.shapes import Stats
from samix.engine.averaging import add_average
from samix.engine.initial import load_initial
from samix.engine.pretrained import PretrainedMixup
from samix.engine.recipe import Recipe
from samix.learned import LEARNED
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.mixups import MIXUPS, MixupTokenMix, MixupTransMix
from samix.nn.zoo import find_spec

POLICIES: dict[str, type[Any]] = {
    "plain": Plain,
    **MIXUPS,
    "mixup+transmix": MixupTransMix,
    "mixup+tokenmix": MixupTokenMix,
    **LEARNED,
    "samix-p": PretrainedMixup,
}
"""How images may be mixed in supervised training."""


@dataclass(frozen=True, kw_only=True)
class Training(Recipe):
    """Supervised training."""

    mixup: MixupSettings[Supervised] = field(default_factory=Plain)
    """How images are mixed; its type is a name of POLICIES."""
    objective: Objective = field(default_factory=Objective)
    """Clean branch, smoothing, binary loss."""
    tested_last: int = 10
    """Each of so many last epochs is tested; top1 is the median over them (the paper: 10)."""

    choices: ClassVar[dict[str, dict[str, type[Any]]]] = {"mixup": POLICIES}
    command: ClassVar[str] = "train"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, self, "", "tested_last")

    def build(self, classes: int, stats: Stats | None = None, *, initial: bool = True) -> Model:
        """A fresh model for `classes` classes; `stats` tells policies how its images are normalised.

        The encoder has its `weights`, where it starts from some, unless `initial` says that all weights come
        from a checkpoint anyway.
        """
        encoder, objective, size = self.encoder.build(self.data.size), self.objective, self.data.size
        if initial:
            load_initial(encoder, self.encoder, size)
        channels, dim = encoder.probe(size)
        branch = objective.clean_weight > 0 and self.mixup.mixes
        if branch and objective.clean_crop < 1 and find_spec(self.encoder.name).one_size:
            raise ValueError(
                f"{self.encoder.name} takes pictures of one size only: leave objective.clean_crop at 1, "
                "and save time with objective.clean_fraction."
            )
        clean_head = linear_head(dim, classes) if branch and objective.clean_head else None
        head = linear_head(dim, classes)
        method = Supervised(encoder, head, classes, clean_head=clean_head, objective=objective)
        model = self.mixup.build(method, Context(channels, size, Mixing, stats))
        momentum = self.optimizer.average
        return model if momentum is None else add_average(model, momentum)
