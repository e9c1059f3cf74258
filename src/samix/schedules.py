"""Values as functions of progress through training, so that resuming needs no state.

Every function takes `progress` in [0, 1]: the share of training that is done.
"""

import math


def cosine(progress: float, start: float, end: float) -> float:
    """Half a cosine from `start` to `end`."""
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def linear(progress: float, start: float, end: float) -> float:
    """A straight line from `start` to `end`."""
    return start + (end - start) * progress


def warmup_cosine(progress: float, start: float, end: float, warmup: float) -> float:
    """Linear from 0 to `start` over the first `warmup` share of training, then half a cosine to `end`."""
    if progress < warmup:
        return start * progress / warmup
    return cosine((progress - warmup) / (1 - warmup) if warmup < 1 else 1.0, start, end)


def held_cosine(progress: float, start: float, end: float, hold: float) -> float:
    """`start` for the first `hold` share of training, then on the half cosine that began at 0.

    The momentum schedule of the official code: it jumps onto the curve when the hold ends.
    """
    return start if progress < hold else cosine(progress, start, end)
