"""PuzzleMix: the policy, the energy of its masks, their solver, and the transport of blocks."""

from samix.mixups.puzzlemix.policy import PuzzleMix

__all__ = ["PuzzleMix"]
