"""What several seeds say: mean and deviation, the difference of two methods seed by seed, ranks.

Two methods are compared on the seeds that both have. A seed draws the first weights and the order of the
pictures for both alike, so what it shares between them drops out of their difference.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

CONFIDENCE = 0.95


class Value(NamedTuple):
    """A number over seeds."""

    mean: float
    std: float | None
    """Sample standard deviation (n - 1); None for a single seed."""

    def text(self, decimals: int) -> str:
        """'67.32 ± 0.41', or '67.32' for one seed."""
        spread = "" if self.std is None else f" ± {self.std:.{decimals}f}"
        return f"{self.mean:.{decimals}f}{spread}"


class Difference(NamedTuple):
    """One method minus another, over the seeds that both have."""

    mean: float
    low: float | None
    """Lower end of the interval of confidence; None for a single seed, which says nothing of the others."""
    high: float | None
    seeds: int

    @property
    def word(self) -> str:
        """'more', 'less', or 'tie' where the interval includes 0; 'one seed' where there is none."""
        if self.low is None or self.high is None:
            return "one seed"
        return "more" if self.low > 0 else "less" if self.high < 0 else "tie"

    def text(self, decimals: int) -> str:
        """'+1.25 [+0.31, +2.19] more', or '+1.25 one seed'."""
        ends = [signed(end, decimals) for end in (self.low, self.high) if end is not None]
        interval = f" [{', '.join(ends)}]" if ends else ""
        return f"{signed(self.mean, decimals)}{interval} {self.word}"


def signed(number: float, decimals: int) -> str:
    """A number with its sign; what rounds to nothing is +0.

    >>> signed(-0.001, 2)
    '+0.00'
    """
    return f"{round(number, decimals) + 0.0:+.{decimals}f}"


class Standing(NamedTuple):
    """One method among others."""

    value: Value
    seeds: tuple[int, ...]
    difference: Difference | None
    """To the baseline; None for itself and where the two share no seed."""
    rank: int
    """1 is the best mean; equal means share a rank."""


def spread(numbers: Sequence[float]) -> Value:
    """Mean and deviation of at least one number.

    >>> spread([1.0, 2.0, 3.0])
    Value(mean=2.0, std=1.0)
    """
    return Value(mean(numbers), stdev(numbers) if len(numbers) > 1 else None)


def paired_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float], confidence: float = CONFIDENCE
) -> Difference | None:
    """The mean difference by seed, with the interval that Student's t distribution gives its mean.

    mean(d) ± t(n - 1) std(d) / sqrt(n) over the n seeds that both have; None if they share none.

    >>> paired_difference({0: 2.0, 1: 3.0, 2: 7.0}, {0: 1.0, 1: 2.0, 3: 9.0})
    Difference(mean=1.0, low=1.0, high=1.0, seeds=2)
    """
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return None
    value = spread([ours[seed] - theirs[seed] for seed in shared])
    if value.std is None:
        return Difference(value.mean, None, None, 1)
    times = float(stdtrit(len(shared) - 1, (1 + confidence) / 2))
    half = times * value.std / math.sqrt(len(shared))
    return Difference(value.mean, value.mean - half, value.mean + half, len(shared))


def judge(
    methods: Mapping[str, Mapping[int, float]],
    baselines: Mapping[str, str],
    best: Callable[[Iterable[float]], float] = max,
) -> dict[str, Standing]:
    """Every method that has a number: its value over seeds, its difference to its baseline, its rank.

    `baselines` tells for a method which other one it is compared with; `best` is max or min.
    """
    means = {name: mean(numbers.values()) for name, numbers in methods.items() if numbers}
    order = sorted(means.values(), reverse=best is max)
    return {
        name: Standing(
            value=spread(list(methods[name].values())),
            seeds=tuple(sorted(methods[name])),
            difference=compare_with(methods, name, baselines.get(name, name)),
            rank=1 + order.index(means[name]),
        )
        for name in means
    }


def compare_with(methods: Mapping[str, Mapping[int, float]], name: str, baseline: str) -> Difference | None:
    """A method against another one, if it is another one and has numbers."""
    return None if baseline == name else paired_difference(methods[name], methods.get(baseline, {}))
