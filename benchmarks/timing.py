"""Timing several steps side by side, so that a machine that is busy for a while slows all of them."""

import time
from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def interleave(
    steps: dict[str, Step], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds per round of every step; each round starts with another one, so that none is always first.

    `time.process_time` as clock counts what the process computes and leaves out what others do meanwhile.
    """
    names = list(steps)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began = clock()
            steps[name]()
            times[name].append(clock() - began)
    return times
