"""Co-Mixup in two files: the policy, and the solver that decides which image fills which block."""

from samix.mixups.comixup.policy import CoMixup

__all__ = ["CoMixup"]
