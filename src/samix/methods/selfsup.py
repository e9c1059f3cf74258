"""What self-supervised methods share: two views, predictions, targets, and a contrast between them.

A method says how it sees two views (`observe`), what it makes of one image (`predict`) and how far a
prediction is from its positive (`contrast`). The clean loss and that of mixed images follow: for every
direction, contrast(p, t) and the sum over the parents of share * contrast(p_m, t, parent) (SAMix Eq. (4)).
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.distributed import gather_constant
from samix.losses.parents import over_parents
from samix.methods.base import Losses
from samix.mixups.mixed import Mixed
from samix.nn.encoder import Encoder
from samix.nn.queue import Queue
from samix.pairing import Pairing
from samix.typing import Embeddings, Images, Index, PerSample, Scalar

Views: TypeAlias = Float[Tensor, "V 3 H W"]
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


class SelfSupervised(nn.Module):
    """Base of the methods. On its own each is the baseline; `SelfMixing` and `SAMixI` wrap it."""

    branch: Branch
    """Encoder and projector that learn."""
    momentum: Branch | None
    """Their slow copy, where the method has one."""
    queue: Queue | None
    """Negatives, where the method keeps them."""
    tau: float = 0.2
    """Temperature; also that of a Mixer's loss."""
    sync_norm = True
    """Whether batch norm's statistics are shared between GPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.momentum, self.queue = None, None

    def predict(self, x: Images) -> Tensor:
        """Online outputs of clean or mixed images, with gradients."""
        raise TypeError(f"{type(self).__name__} must define predict(x).")

    def observe(self, first: Images, second: Images, *, predicting: bool = True) -> Observed:
        """Predictions and targets of two clean views; where only mixed images predict, the targets alone."""
        raise TypeError(f"{type(self).__name__} must define observe(first, second).")

    def contrast(self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed) -> PerSample:
        """The loss of prediction i whose positive is row positive[i] of the target."""
        raise TypeError(f"{type(self).__name__} must define contrast(prediction, target, positive, seen).")

    def shared_contrast(
        self, prediction: Tensor, target: Tensor, positive: Index, seen: Observed
    ) -> PerSample:
        """The same with all positives of the batch in one softmax (i-Mix), where that is another loss."""
        return self.contrast(prediction, target, positive, seen)

    @property
    def encoder(self) -> Encoder:
        """The online encoder, what pre-training is for."""
        return self.branch.encoder

    @property
    def online(self) -> nn.Module:
        """Images -> predictions as one network, for policies that mix inside it."""
        return Online(self)

    def begin(self, progress: float) -> None:
        """What a method does before it looks at a batch."""

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
        seen = self.observe(*views_of(x, index))
        loss = self.loss(seen)
        self.remember(seen)
        return Losses(loss)

    @torch.no_grad()
    def remember(self, seen: Observed) -> None:
        """Puts the keys of all processes into the queue, after the losses: none is its own negative."""
        if self.queue is not None:
            self.queue.push(gather_constant(seen.targets[0]))

    def after_step(self, progress: float) -> None:
        """Momentum update and projections."""

    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """Plain pre-training mixes nothing."""
        return None

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Everything that learns follows the encoder's optimiser settings."""
        return {"encoder": [p for p in self.parameters() if p.requires_grad]}


class Around(nn.Module):
    """What wraps a method and changes its losses, but neither its parameters nor its state."""

    method: SelfSupervised

    def __init__(self, method: SelfSupervised) -> None:
        super().__init__()
        self.method = method

    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """What would be mixed, to look at; None where no images are mixed."""
        return None

    def after_step(self, progress: float) -> None:
        """The method's own."""
        self.method.after_step(progress)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's own."""
        return self.method.parameter_groups()


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


def check_tau(tau: float) -> None:
    """Refuses a temperature that is not positive."""
    if tau <= 0:
        raise ValueError(f"method.tau must be positive, got {tau}.")


def check_momentum(momentum: float) -> None:
    """Refuses a momentum outside [0, 1]."""
    if not 0 <= momentum <= 1:
        raise ValueError(f"method.momentum must lie in [0, 1], got {momentum}.")
