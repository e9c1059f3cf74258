"""Accuracy in training when labels are mixed: what a progress bar can show."""

from typing import NamedTuple

from torch import Tensor

from samix.core.shapes import Logits, Scalar


class MixedAccuracy(NamedTuple):
    """Percentages over a batch of mixed images."""

    weighted: Scalar
    """Mean label weight of the predicted class: lam acc(y_a) + (1 - lam) acc(y_b)."""
    dominant: Scalar
    """How often the predicted class has the largest label weight."""
    best: Scalar
    """The weighted accuracy of a perfect prediction: mean of the largest label weight."""


def mixed_accuracy(outputs: Logits, targets: Tensor) -> MixedAccuracy:
    """Accuracy against soft labels [B, classes] (or class indices [B], where all three mean the usual)."""
    predicted = outputs.argmax(dim=1)
    if targets.ndim == 1:
        hits = 100 * (predicted == targets).float().mean()
        return MixedAccuracy(hits, hits, 100 * hits.new_ones(()))
    weight = targets.float().gather(1, predicted[:, None])[:, 0]
    largest = targets.float().amax(dim=1)
    return MixedAccuracy(100 * weight.mean(), 100 * (weight >= largest).float().mean(), 100 * largest.mean())
