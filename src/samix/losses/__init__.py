"""Losses: pure functions, one idea per file, formula and equation number in the docstring."""

from samix.losses.cross_entropy import cross_entropy, mixup_cross_entropy, soft_binary_cross_entropy
from samix.losses.eta_balanced import EtaBalanced, eta_balanced, pbce
from samix.losses.mask import mask_loss, mask_mean_loss, mask_variance

__all__ = [
    "EtaBalanced",
    "cross_entropy",
    "eta_balanced",
    "mask_loss",
    "mask_mean_loss",
    "mask_variance",
    "mixup_cross_entropy",
    "pbce",
    "soft_binary_cross_entropy",
]
