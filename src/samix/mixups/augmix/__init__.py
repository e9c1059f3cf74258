"""AugMix in two files: the policy, and the operations that its chains are made of."""

from samix.mixups.augmix.policy import AugMix

__all__ = ["AugMix"]
