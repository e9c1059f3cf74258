"""Values as functions of progress through training, so that resuming needs no state.

Every function takes `progress` in [0, 1]: the share of training that is done.
"""

import math

from samix.core.checks import passes


def check_progress(progress: float) -> None:
    """Refuses what is no share of training: most often somebody passes the number of the step."""
    if not passes(lambda share: 0 <= share <= 1, progress):
        raise ValueError(f"progress is the share of training done, step / total in [0, 1]; got {progress!r}.")


def cosine(progress: float, start: float, end: float) -> float:
    """Half a cosine from `start` to `end`."""
    check_progress(progress)
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def linear(progress: float, start: float, end: float) -> float:
    """A straight line from `start` to `end`."""
    check_progress(progress)
    return start + (end - start) * progress


def warmup_cosine(progress: float, start: float, end: float, warmup: float, first: float = 0.0) -> float:
    """Linear from `first` times `start` to `start` over the first `warmup` share of training, then half a
    cosine to `end`."""
    check_progress(progress)
    if progress < warmup:
        return start * (first + (1 - first) * progress / warmup)
    return cosine((progress - warmup) / (1 - warmup) if warmup < 1 else 1.0, start, end)


def held_cosine(progress: float, start: float, end: float, hold: float) -> float:
    """`start` for the first `hold` share of training, then on the half cosine that began at 0.

    The momentum schedule of the official code: it jumps onto the curve when the hold ends.
    """
    check_progress(progress)
    return start if progress < hold else cosine(progress, start, end)
