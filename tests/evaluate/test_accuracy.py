"""Accuracy and calibration against a slow loop."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.evaluate.accuracy import BINS, count, score, total


def slow_score(logits: torch.Tensor, y: torch.Tensor) -> tuple[float, float, float, float]:
    """Top-1, top-5, expected calibration error and cross-entropy, one picture and one bin at a time."""
    top1 = top5 = 0
    surprise = 0.0
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for row, label in zip(logits.float(), y.tolist(), strict=True):
        order = sorted(range(len(row)), key=lambda k: -row[k].item())
        hit = order[0] == label
        top1, top5 = top1 + hit, top5 + (label in order[:5])
        confidence = row.softmax(dim=0).max().item()
        surprise += math.log(sum(math.exp(value) for value in row.tolist())) - row[label].item()
        bins[min(int(confidence * BINS), BINS - 1)].append((confidence, hit))
    error = 0.0
    for members in bins:
        if members:
            confidence = sum(c for c, _ in members) / len(members)
            accuracy = sum(h for _, h in members) / len(members)
            error += len(members) / len(y) * abs(confidence - accuracy)
    return 100 * top1 / len(y), 100 * top5 / len(y), 100 * error, surprise / len(y)


@given(st.integers(1, 40), st.integers(2, 12), st.floats(0.1, 10), st.integers(0, 1000))
def test_value_scores(pictures, classes, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(pictures, classes, generator=generator)
    y = torch.randint(0, classes, (pictures,), generator=generator)
    assert tuple(score(count(logits, y))) == pytest.approx(slow_score(logits, y), abs=1e-3)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 1000))
def test_invariant_counts_add_up_over_batches(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(sum(sizes), 7, generator=generator)
    y = torch.randint(0, 7, (sum(sizes),), generator=generator)
    parts = [count(a, b) for a, b in zip(logits.split(sizes), y.split(sizes), strict=True)]
    assert tuple(score(total(parts))) == pytest.approx(tuple(score(count(logits, y))))


def test_value_certain_and_right_is_calibrated():
    y = torch.tensor([0, 1, 2])
    assert tuple(score(count(100 * torch.eye(3), y))) == (100.0, 100.0, 0.0, 0.0)


def test_value_certain_and_wrong_is_not():
    result = score(count(100 * torch.eye(8), torch.arange(8).roll(1)))
    assert result.top1 == 0 and result.ece == pytest.approx(100)


def test_value_half_precision_is_counted_in_float():
    logits = torch.randn(50, 5).bfloat16()
    y = torch.randint(0, 5, (50,))
    assert count(logits, y).bins[1].sum() == pytest.approx(
        logits.float().softmax(dim=1).amax(dim=1).sum().item(), rel=1e-5
    )
