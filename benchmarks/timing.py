"""Timing several steps side by side, so that a machine that is busy for a while slows all of them."""

import time
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def interleave(steps: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """Seconds per round of every step; each round starts with another one, so that none is always first."""
    names = list(steps)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began = time.perf_counter()
            steps[name]()
            times[name].append(time.perf_counter() - began)
    return times
