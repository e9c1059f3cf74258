"""What the engine needs of a model: losses for a batch, an update after the step, logits per head."""

from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from samix.mixups.mixed import Mixed
from samix.pairing import Pairing
from samix.typing import Images, Labels, Lam, Logits, Scalar


class MixerLog(NamedTuple):
    """What tells whether a Mixer is alive, one value each (detached)."""

    local: Scalar
    """l_+ of Eq. (8)."""
    globally: Scalar
    """l_- of Eq. (8)."""
    mask: Scalar
    """The mask loss before its weight beta."""
    gamma: Scalar
    """Strength of the lam encoding; NaN where the Mixer has none."""
    gap: Scalar
    """Mean of |mean(mask) - lam| before adjusting."""
    deviation: Scalar
    """Mean over the batch of the mask's spatial standard deviation; 0 is the trivial solution."""


class Losses(NamedTuple):
    """The parts of one step's objective, SAMix Eq. (5); their gradients reach disjoint parameters."""

    encoder: Scalar
    """Reaches the encoder and its heads only."""
    mixer: Scalar | None = None
    """Reaches the Mixer only; None for hand-made mixups."""
    lam: Lam | None = None
    """The lam that the encoder's images were mixed with, None for plain training."""
    log: MixerLog | None = None

    @property
    def total(self) -> Scalar:
        """L_theta,omega + L_phi."""
        return self.encoder if self.mixer is None else self.encoder + self.mixer


def mean_losses(parts: list[tuple[Losses, float]]) -> Losses:
    """The losses of a batch that was learned from in weighted parts; lam and log of the last part."""
    last, _ = parts[-1]
    if len(parts) == 1:
        return last
    encoder = torch.stack([losses.encoder.detach() * weight for losses, weight in parts]).sum()
    mixed = [(losses.mixer.detach() * weight, weight) for losses, weight in parts if losses.mixer is not None]
    mixer = torch.stack([loss for loss, _ in mixed]).sum() / sum(w for _, w in mixed) if mixed else None
    return last._replace(encoder=encoder, mixer=mixer)


def method_of(model: nn.Module) -> Any:
    """The method inside what mixes for it; a method that nothing is wrapped around is its own."""
    return getattr(model, "method", model)


class Model(Protocol):
    """A trainable model as the engine sees it."""

    def __call__(self, x: Images, y: Labels, progress: float) -> Losses:
        """The losses of one batch; `progress` in [0, 1] is the share of training done."""

    def after_step(self, progress: float) -> None:
        """Momentum update and projections, right after the optimiser's step."""

    def heads(self, x: Images) -> dict[str, Logits]:
        """Logits of every head for evaluation; the first is the one to report."""

    def picture(self, x: Images, y: Labels, pairing: Pairing) -> Mixed | None:
        """What the model would mix, to look at; None where nothing is mixed."""

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Trainable parameters by the optimiser settings they follow: 'encoder', 'mixer'."""
