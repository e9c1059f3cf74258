"""Co-Mixup: the policy, and the solver that shares a batch out among its outputs."""

from samix.mixups.comixup.policy import CoMixup

__all__ = ["CoMixup"]
