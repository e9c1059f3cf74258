"""What several seeds say, against scipy's own tests and slow loops."""

import numpy as np
import pytest
from scipy import stats

from samix.core.comparing import Difference, judge, paired_difference, spread

OURS = {0: 70.1, 1: 64.0, 2: 76.4, 5: 61.2}
THEIRS = {0: 53.6, 1: 63.1, 2: 76.2, 7: 10.0}


def test_value_spread_against_numpy():
    numbers = list(OURS.values())
    assert spread(numbers) == pytest.approx((np.mean(numbers), np.std(numbers, ddof=1)))
    assert spread([3.5]) == (3.5, None)


@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_value_a_difference_is_that_of_the_paired_t_test(confidence):
    ours, theirs = ([values[seed] for seed in (0, 1, 2)] for values in (OURS, THEIRS))
    low, high = stats.ttest_rel(ours, theirs).confidence_interval(confidence)
    found = paired_difference(OURS, THEIRS, confidence)
    assert found == pytest.approx((np.mean(np.subtract(ours, theirs)), low, high, 3))


def test_value_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        shared = rng.normal(0, 5, 3)
        ours = dict(enumerate(shared + rng.normal(1, 1, 3)))
        found = paired_difference(ours, dict(enumerate(shared + rng.normal(0, 1, 3))))
        held += found.low <= 1 <= found.high
    assert 0.92 < held / 400 < 0.98


@pytest.mark.parametrize(
    ("low", "high", "word", "text"),
    [
        (0.1, 1.9, "more", "+1.00 [+0.10, +1.90] more"),
        (-0.1, 2.1, "tie", "+1.00 [-0.10, +2.10] tie"),
        (0.0, 2.0, "tie", "+1.00 [+0.00, +2.00] tie"),
        (-3.0, -1.0, "less", "+1.00 [-3.00, -1.00] less"),
        (None, None, "one seed", "+1.00 one seed"),
    ],
)
def test_value_what_a_difference_is_called(low, high, word, text):
    difference = Difference(1.0, low, high, 3)
    assert (difference.word, difference.text(2)) == (word, text)


def test_value_no_difference_without_a_shared_seed_and_no_interval_of_one():
    assert paired_difference({0: 1.0}, {1: 2.0}) is None
    assert paired_difference({0: 3.0, 2: 9.0}, {0: 1.0}) == (2.0, None, None, 1)


def test_value_equal_numbers_are_a_tie():
    assert paired_difference({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}).word == "tie"


def test_value_standings():
    methods = {"plain": {0: 50.0, 1: 52.0}, "a": {0: 60.0, 1: 61.0}, "b": {1: 51.0}, "c": {}, "d": {0: 60.5}}
    found = judge(methods, dict.fromkeys(methods, "plain"))
    assert list(found) == ["plain", "a", "b", "d"]
    assert [found[name].rank for name in found] == [3, 1, 3, 1]
    assert found["plain"].difference is None
    assert found["a"].difference.mean == 9.5 and found["a"].seeds == (0, 1)
    assert found["b"].difference == (-1.0, None, None, 1)
    assert found["a"].value == pytest.approx((60.5, np.sqrt(0.5)))
    assert judge(methods, {"a": "b", "b": "c"})["a"].difference == (10.0, None, None, 1)
    assert judge(methods, {"b": "c"})["b"].difference is judge(methods, {})["a"].difference is None
    assert [each.rank for each in judge(methods, {}, best=min).values()] == [1, 3, 1, 3]
