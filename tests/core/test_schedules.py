"""Schedules: end points, middles, and no value outside their range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samix.core.schedules import cosine, held_cosine, linear, warmup_cosine

progress = st.floats(0, 1)


@pytest.mark.parametrize("schedule", [cosine, linear])
def test_value_ends_and_middle(schedule):
    assert schedule(0.0, 0.1, 0.02) == pytest.approx(0.1)
    assert schedule(0.5, 0.1, 0.02) == pytest.approx(0.06)
    assert schedule(1.0, 0.1, 0.02) == pytest.approx(0.02)


def test_value_cosine_is_flat_at_both_ends_and_linear_is_not():
    assert 1 - cosine(0.01, 1.0, 0.0) < 0.001 and cosine(0.99, 1.0, 0.0) < 0.001
    assert 1 - linear(0.01, 1.0, 0.0) == pytest.approx(0.01)
    assert cosine(0.25, 1.0, 0.0) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


@given(first=progress, second=progress, start=st.floats(-2, 2), end=st.floats(-2, 2))
@pytest.mark.parametrize("schedule", [cosine, linear])
def test_invariant_between_the_ends_and_monotone(schedule, first, second, start, end):
    early, late = (schedule(p, start, end) for p in sorted([first, second]))
    for value in (early, late):
        assert min(start, end) - 1e-9 <= value <= max(start, end) + 1e-9
    assert (late - early) * (end - start) >= -1e-9


def test_value_warmup():
    assert warmup_cosine(0.0, 0.1, 0.0, warmup=0.2) == 0.0
    assert warmup_cosine(0.1, 0.1, 0.0, warmup=0.2) == pytest.approx(0.05)
    assert warmup_cosine(0.2, 0.1, 0.0, warmup=0.2) == pytest.approx(0.1)
    assert warmup_cosine(0.6, 0.1, 0.0, warmup=0.2) == pytest.approx(0.05)
    assert warmup_cosine(1.0, 0.1, 0.01, warmup=0.2) == pytest.approx(0.01)


def test_value_warmup_from_a_share():
    assert warmup_cosine(0.0, 0.1, 0.0, warmup=0.2, first=0.5) == pytest.approx(0.05)
    assert warmup_cosine(0.1, 0.1, 0.0, warmup=0.2, first=0.5) == pytest.approx(0.075)
    assert warmup_cosine(0.2, 0.1, 0.0, warmup=0.2, first=0.5) == pytest.approx(0.1)


@given(progress=progress)
def test_invariant_warmup_of_nothing_is_the_cosine(progress):
    assert warmup_cosine(progress, 0.3, 0.01, warmup=0.0) == cosine(progress, 0.3, 0.01)


def test_value_warmup_of_everything_ends_at_the_end():
    assert warmup_cosine(0.5, 0.2, 0.0, warmup=1.0) == pytest.approx(0.1)
    assert warmup_cosine(1.0, 0.2, 0.0, warmup=1.0) == pytest.approx(0.0)


def test_value_held_cosine_holds_and_then_joins_the_curve():
    assert held_cosine(0.0999, 0.999, 1.0, hold=0.1) == 0.999
    assert held_cosine(0.1, 0.999, 1.0, hold=0.1) == cosine(0.1, 0.999, 1.0) > 0.999
    assert held_cosine(1.0, 0.999, 1.0, hold=0.1) == pytest.approx(1.0)
