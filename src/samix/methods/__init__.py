"""Methods: what is learned from images, with labels (supervised.py) or without (ssl/), and what wraps one."""

from samix.methods.supervised import Objective, Supervised, linear_head

__all__ = ["Objective", "Supervised", "linear_head"]
