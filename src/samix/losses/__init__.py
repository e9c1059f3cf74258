"""Losses that methods share: pure functions, formula and equation number in the docstring.

The losses that only a Mixer has, Eqs. (6)-(8) and the mask loss, are in `samix.learned.losses`.
"""

from samix._moved import find_moved
from samix.losses.classification import (
    LabelLoss,
    cross_entropy,
    decoupled_cross_entropy,
    jensen_shannon,
    mixup_cross_entropy,
    soft_binary_cross_entropy,
)
from samix.losses.contrastive import info_nce, mixup_info_nce

__all__ = [
    "LabelLoss",
    "cross_entropy",
    "decoupled_cross_entropy",
    "info_nce",
    "jensen_shannon",
    "mixup_cross_entropy",
    "mixup_info_nce",
    "soft_binary_cross_entropy",
]


def __getattr__(name: str) -> object:
    return find_moved("losses", name)
