"""What self-supervised methods share: two views, predictions, targets, and a contrast between them.

A method says how it sees two views (`observe`), what it makes of one image (`predict`) and how far a
prediction is from its positive (`contrast`). The clean loss and that of mixed images follow: for every
direction, contrast(p, t) and the sum over the parents of share * contrast(p_m, t, parent) (SAMix Eq. (4)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.contract import Losses, Model
from samix.core.checks import check_fields, check_not_negative
from samix.core.distributed import gather_constant
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Embeddings, Images, Index, PerSample, Scalar
from samix.core.small_crops import SmallCrops
from samix.losses.contrastive import over_parents
from samix.nn.encoder import Encoder
from samix.nn.key_queue import Queue

Views: TypeAlias = Float[Tensor, "V c H W"]
"""All first views of a batch, then all second views: V = 2 B."""


class Branch(nn.Module):
    """An encoder and its projection head."""

    def __init__(self, encoder: Encoder, projector: nn.Module) -> None:
        super().__init__()
        self.encoder, self.projector = encoder, projector

    def forward(self, x: Images) -> Embeddings:
        return self.projector(self.encoder(x))


class Observed(NamedTuple):
    """What two clean views gave."""

    predictions: tuple[Tensor, ...]
    """Online outputs, one per direction, the first of the first view; empty where nobody asked."""
    targets: tuple[Tensor, ...]
    """What each prediction is to agree with, from the other view."""
    keys: Tensor | None = None
    """The momentum branch's embeddings of the second view, not normalised; None without such a branch."""
    negatives: Tensor | None = None
    """Keys of other pictures, where the method has a queue."""
    crops: tuple[Tensor, ...] = ()
    """Online outputs of small crops, where the method takes any."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How clean and mixed images share the objective."""

    base: float = 1.0
    """Weight of the clean loss; 0 learns from mixed images alone (i-Mix, BSIM)."""
    mixed: float = 1.0
    """Weight of the mixed images' loss."""
    views: int = 2
    """Views that are mixed where a method is symmetric; 1 is cheaper and weighs as much."""
    same_view: bool = False
    """Targets from the mixed view instead of the other one; for the study in the paper's appendix."""
    reversed_pairs: bool = False
    """Pair image i with image B - 1 - i instead of a random one (Un-Mix)."""
    dominant: bool = False
    """lam <- max(lam, 1 - lam), so that the own image shows more (i-Mix)."""
    shared: bool = False
    """All positives of the batch in one softmax (i-Mix), where the method has separate ones."""
    mixed_first: bool = False
    """Mixed images pass the encoder before clean ones, so that batch norm's running statistics end on clean
    ones; for methods whose targets come from a momentum branch."""

    def __post_init__(self) -> None:
        check_not_negative(self, "terms", "base", "mixed")
        if self.base + self.mixed == 0:
            raise ValueError("terms.base and terms.mixed must not both be 0.")
        check_fields(self, "terms", ["views"], lambda value: value in (1, 2), "must be 1 or 2")

    def paired(self, pairing: Pairing) -> Pairing:
        """The pairing with the partners and the lam that the terms ask for."""
        lam, index = pairing
        if self.reversed_pairs:
            pairing = pairing._replace(index=torch.arange(len(index), device=index.device).flip(0))
        if self.dominant:
            pairing = pairing._replace(lam=torch.maximum(lam, 1 - lam))
        return pairing

    def mixed_views(self, views: tuple[Images, Images], seen: Observed) -> tuple[Images, ...]:
        """The views that are mixed: never more than the method has directions."""
        return views[: min(self.views, len(seen.targets))]

    def observe(self, method: "SelfSupervised", views: tuple[Images, Images]) -> Observed:
        """The clean views; their predictions are made later where mixed images pass first, or not at all."""
        if self.mixed_first and method.momentum is None:
            raise ValueError(
                "terms.mixed_first needs a momentum branch for the targets; those of "
                f"{type(method).__name__} come from its clean pass. Leave it false, or take MoCo or BYOL as "
                "--method."
            )
        return method.observe(*views, predicting=self.base > 0 and not self.mixed_first)

    def loss(
        self,
        method: "SelfSupervised",
        views: tuple[Images, Images],
        seen: Observed,
        outputs: Sequence[Tensor],
        mixed: Sequence[Mixed],
    ) -> Scalar:
        """base L(clean) + mixed L(mixed)."""
        targets = method.same_view_targets(*views, seen) if self.same_view else seen.targets
        loss = self.mixed * method.mixed_loss(outputs, mixed, targets, seen, shared=self.shared)
        if self.base and self.mixed_first:
            seen = seen._replace(predictions=method.clean_predictions(*views))
        return loss + self.base * method.loss(seen) if self.base else loss


class SelfSupervised(Model):
    """Base of the methods. On its own each is the baseline; `SelfMixing` and `SAMixI` wrap it."""

    branch: Branch
    """Encoder and projector that learn."""
    momentum: Branch | None
    """Their slow copy, where the method has one."""
    queue: Queue | None
    """Negatives, where the method keeps them."""
    tau: float = 0.2
    """Temperature; also that of a Mixer's loss."""
    sync_norm = True  # type: ignore[assignment]
    terms = Terms()
    """How clean and mixed images share the objective, where a mixup joins."""
    crops = SmallCrops()
    """The small crops that stand in a batch behind the two views."""
    takes_crops: ClassVar[bool] = False
    """Whether the method learns from small crops."""

    def __init__(self) -> None:
        super().__init__()
        self.momentum, self.queue = None, None

    def predict(self, x: Images) -> Tensor:
        """Online outputs of clean or mixed images, with gradients."""
        raise TypeError(f"{type(self).__name__} must define predict(x).")

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """Predictions and targets of two clean views; where only mixed images predict, the targets alone."""
        raise TypeError(f"{type(self).__name__} must define observe(first, second).")

    def clean_predictions(self, first: Images, second: Images) -> tuple[Tensor, ...]:
        """Online outputs of clean views, one per direction, where targets come from a momentum branch."""
        raise TypeError(f"{type(self).__name__} must define clean_predictions(first, second).")

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        """The loss of prediction i whose positive is row positive[i] of the target."""
        raise TypeError(f"{type(self).__name__} must define contrast(prediction, target, positive, seen).")

    def shared_contrast(
        self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed
    ) -> PerSample:
        """The same with all positives of the batch in one softmax (i-Mix), where that is another loss."""
        return self.contrast(prediction, target, positive, seen)

    @property
    def encoder(self) -> Encoder:  # type: ignore[override]
        """The online encoder, what pre-training is for."""
        return self.branch.encoder

    @torch.no_grad()
    def embedding_width(self, size: int) -> int:
        """The width of the projector's output, found by running one black picture of that side."""
        training = self.training
        self.eval()
        width = self.branch(self.encoder.black(size)).shape[1]
        self.train(training)
        return width

    @property
    def online(self) -> nn.Module:
        """Images -> predictions as one network, for policies that mix inside it."""
        return Online(self)

    def begin(self, progress: float) -> None:
        """What a method does before it looks at a batch."""

    def take(self, x: Views, index: Index) -> tuple[Images, Images]:
        """The two views of a batch; a method that takes small crops keeps them for `observe`."""
        return views_of(x, index)

    def loss(self, seen: Observed) -> Scalar:
        """The clean loss: the sum over the directions."""
        total = torch.zeros((), device=seen.targets[0].device)
        for prediction, target in zip(seen.predictions, seen.targets, strict=True):
            own = torch.arange(len(prediction), device=prediction.device)
            total = total + self.contrast(prediction, target, own, seen).mean()
        return total

    def mixed_loss(
        self,
        outputs: Sequence[Tensor],
        mixed: Sequence[Mixed],
        targets: Sequence[Tensor],
        seen: Observed,
        *,
        shared: bool = False,
    ) -> Scalar:
        """The loss of mixed views; fewer views than directions weigh as much as all would."""
        contrast = self.shared_contrast if shared else self.contrast
        total = torch.zeros((), device=outputs[0].device)
        for output, each, target in zip(outputs, mixed, targets, strict=False):
            against = partial(contrast, output, target, seen=seen)
            total = total + over_parents(against, each.family())
        return total * (len(seen.targets) / len(outputs))

    def same_view_targets(self, first: Images, second: Images, seen: Observed) -> tuple[Tensor, ...]:
        """Targets from the view that is mixed, for the study of same- and cross-view objectives."""
        return tuple(reversed(seen.targets))

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """Pre-training without mixup; x holds all first views, then all second views."""
        self.begin(progress)
        seen = self.observe(*self.take(x, index))
        loss = self.loss(seen)
        self.remember(seen)
        return Losses(loss)

    @torch.no_grad()
    def remember(self, seen: Observed) -> None:
        """Puts the keys of all processes into the queue, after the losses: none is its own negative."""
        if self.queue is not None:
            self.queue.push(gather_constant(seen.targets[0]))


@runtime_checkable
class MethodSettings(Protocol):
    """What a method is, as a typed value that a recipe holds."""

    def build(self, encoder: Encoder, features: int) -> SelfSupervised:
        """The method around an encoder whose output has `features` values."""


class Online(nn.Module):
    """A method's `predict` as a network, whose layers hooks can find; the encoder's come first."""

    def __init__(self, method: SelfSupervised) -> None:
        super().__init__()
        self.encoder, self.predict = method.encoder, method.predict

    def forward(self, x: Images) -> Tensor:
        return self.predict(x)


def views_of(x: Views, index: Index) -> tuple[Images, Images]:
    """The two views of a batch that holds all first views, then all second ones."""
    if len(x) != 2 * len(index):
        raise ValueError(
            f"self-supervised training takes two views of every picture: {len(index)} pictures need "
            f"{2 * len(index)} images (all first views, then all second views), got {len(x)}."
        )
    first, second = x.chunk(2)
    return first, second
