"""The eta-balanced generation loss that trains the Mixer (SAMix Eqs. (6), (8)).

Differs from the official code, whose eta weighs classes with zero target and so has no effect (O1).
The paper's Eq. (6) does not say over which classes its softmax runs; over all of them pBCE would equal
mixup cross-entropy, so it runs over the pair's two classes, as the instance-level Eq. (7) does (E2).
"""

from typing import NamedTuple

from torch.nn import functional as F

from samix.losses.cross_entropy import mixup_cross_entropy_per_sample, of_class
from samix.pairing import Pairing
from samix.precision import widened
from samix.typing import Labels, Logits, PerSample, Scalar


class EtaBalanced(NamedTuple):
    """Both parts of Eq. (8), kept apart for the log."""

    local: Scalar
    """l_+: is the mixture lam-smooth between its own two classes?"""
    globally: Scalar
    """l_-: is it distinct from all other classes?"""
    total: Scalar
    """The weighted sum of both."""


def pbce(logits: Logits, y: Labels, pairing: Pairing) -> PerSample:
    """-lam log p_a - (1 - lam) log p_b with p the softmax over the logits of a and b, SAMix Eq. (6).

    Zero for a pair of one class; otherwise smallest where p_a = lam.
    """
    scores, y_j = widened(logits), y[pairing.index]
    difference = of_class(scores, y) - of_class(scores, y_j)
    loss = pairing.lam * F.softplus(-difference) + (1 - pairing.lam) * F.softplus(difference)
    return loss * (y != y_j)


def eta_balanced(
    logits: Logits, y: Labels, pairing: Pairing, eta: float, local_weight: float = 1.0
) -> EtaBalanced:
    """l_eta = l_+ + eta l_-, SAMix Eq. (8): pBCE plus eta times mixup cross-entropy, batch means.

    `local_weight` 0 with eta 1 is AutoMix's plain mixup cross-entropy.
    """
    local = pbce(logits, y, pairing).mean()
    globally = mixup_cross_entropy_per_sample(logits, y, pairing).mean()
    return EtaBalanced(local, globally, local_weight * local + eta * globally)
