"""PuzzleMix in four files: the policy, the energy of a mask, its solver, and the transport of blocks."""

from samix.mixups.puzzlemix.policy import PuzzleMix

__all__ = ["PuzzleMix"]
