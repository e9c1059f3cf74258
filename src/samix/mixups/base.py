"""The contract of every mixup: `policy(x, pairing) -> Mixed`.

`lam` weighs the first image of a pair and `mask == 1` keeps it, everywhere. Nothing here writes
into its input. Only `draw` and a policy's own mask function touch the random generator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from samix.pairing import Pairing, draw_pairing
from samix.typing import Images, Lam, Mask, Scalar, SoftLabels

Criterion = Callable[[Tensor, Tensor], Tensor]


def blend(x: Images, partner: Images, mask: Mask) -> Images:
    """x_mix = mask * x + (1 - mask) * partner: the paper's h(.), with s_j = 1 - s_i."""
    return mask * x + (1 - mask) * partner


def one_hot(y: Tensor, classes: int) -> SoftLabels:
    """Class indices [B] become one-hot rows [B, classes]; rows pass through unchanged."""
    if y.ndim == 1 and not y.is_floating_point():
        check_labels(y, classes)
        return F.one_hot(y.long(), classes).float()
    if y.ndim == 2 and y.shape[1] == classes:
        return y.float()
    raise ValueError(
        f"labels must have shape [B] (class indices) or [B, {classes}] (soft labels); "
        f"got {list(y.shape)} of {y.dtype}." + (" Call y.squeeze(1)." if y.shape[1:] == (1,) else "")
    )


def smooth(rows: SoftLabels, smoothing: float) -> SoftLabels:
    """(1 - smoothing) y + smoothing / classes."""
    return (1 - smoothing) * rows + smoothing / rows.shape[1]


def check_labels(y: Tensor, classes: int) -> None:
    """Refuses class indices outside [0, classes), naming the first bad one."""
    bad = ((y < 0) | (y >= classes)).nonzero()
    if len(bad):
        where = int(bad[0])
        raise ValueError(
            f"labels must lie in [0, {classes - 1}] for {classes} classes; "
            f"label {int(y[where])} at position {where} does not. Check the number of classes."
        )


class Mixed(NamedTuple):
    """A mixed batch. `pairing.lam` is the weight that the first image's label deserves."""

    x: Images
    mask: Mask
    pairing: Pairing

    def labels(self, y: Tensor) -> tuple[Tensor, Tensor, Lam]:
        """(y_a, y_b, lam) for any loss: `lam * loss(y_a) + (1 - lam) * loss(y_b)`."""
        return y, y[self.pairing.index], self.pairing.lam

    def soft_labels(self, y: Tensor, classes: int, smoothing: float = 0.0) -> SoftLabels:
        """lam * y_i + (1 - lam) * y_j as rows [B, classes], smoothed towards uniform if asked."""
        rows = one_hot(y, classes)
        lam = self.pairing.lam.to(rows)[:, None]
        return smooth(lam * rows + (1 - lam) * rows[self.pairing.index], smoothing)

    def loss(self, criterion: Criterion, outputs: Tensor, y: Tensor) -> Scalar:
        """lam-weighted loss for a criterion that returns one value per sample (reduction='none')."""
        y_a, y_b, lam = self.labels(y)
        loss_a, loss_b = criterion(outputs, y_a), criterion(outputs, y_b)
        if loss_a.shape[:1] != outputs.shape[:1]:
            raise ValueError(
                "the criterion must return one loss per sample, because lam may differ between samples; "
                f"got shape {list(loss_a.shape)} for a batch of {len(outputs)}. Use reduction='none'."
            )
        weight = lam.to(loss_a).view(-1, *[1] * (loss_a.ndim - 1))
        return (weight * loss_a + (1 - weight) * loss_b).mean()


@dataclass(frozen=True, kw_only=True)
class Mixup:
    """Base of every hand-made policy; the dataclass is its own configuration."""

    alpha: float = 1.0
    """lam ~ Beta(alpha, alpha)."""
    per_sample: bool = False
    """Draw one lam per pair instead of one per batch."""

    def __post_init__(self) -> None:
        if self.alpha <= 0:
            raise ValueError(f"mixup.alpha must be positive, got {self.alpha}.")

    def draw(
        self, batch: int, generator: torch.Generator | None = None, device: torch.device | str | None = None
    ) -> Pairing:
        """Draws who is mixed with whom and how much."""
        return draw_pairing(batch, self.alpha, per_sample=self.per_sample, generator=generator, device=device)

    def mask(self, x: Images, lam: Lam, generator: torch.Generator | None = None) -> Mask:
        """Where the first image shows: one mask for a lam of [1], B masks for a lam of [B]."""
        raise TypeError(f"{type(self).__name__} must define mask(x, lam, generator).")

    def __call__(self, x: Images, pairing: Pairing, generator: torch.Generator | None = None) -> Mixed:
        """Mixes each image with its partner; the label weight becomes the mask's true mean."""
        mask = self.mask(x, pairing.lam, generator)
        weight = mask.flatten(1).float().mean(dim=1)
        return Mixed(blend(x, x[pairing.index], mask), mask, Pairing(weight, pairing.index))
