"""k-nearest neighbours against a slow loop."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.evaluate.knn import knn_accuracy

CLASSES = 6


def slow_knn(train, train_labels, test, test_labels, *, classes, k, tau) -> tuple[float, float]:
    """Top-1 and top-5, one test picture and one neighbour at a time."""
    top1 = top5 = 0
    for query, label in zip(test, test_labels.tolist(), strict=True):
        cosines = [float(query @ other / (query.norm() * other.norm())) for other in train]
        nearest = sorted(range(len(train)), key=lambda i: -cosines[i])[:k]
        votes = dict.fromkeys(range(classes), 0.0)
        for i in nearest:
            votes[int(train_labels[i])] += math.exp(cosines[i] / tau)
        order = [c for c in sorted(votes, key=lambda c: -votes[c]) if votes[c] > 0]
        top1, top5 = top1 + (order[0] == label), top5 + (label in order[:5])
    return 100 * top1 / len(test), 100 * top5 / len(test)


def draw(train: int, test: int, seed: int = 0, classes: int = CLASSES):
    """Random features and labels, in the order of the function's arguments."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for count in (train, test):
        parts.append(torch.randn(count, 4, generator=generator))
        parts.append(torch.randint(0, classes, (count,), generator=generator))
    return parts


@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 40), st.floats(0.05, 2), st.integers(0, 999))
def test_value_scores(train, test, k, tau, seed):
    data = draw(train, test, seed)
    expected = slow_knn(*data, classes=CLASSES, k=k, tau=tau)
    assert tuple(knn_accuracy(*data, classes=CLASSES, k=k, tau=tau)) == pytest.approx(expected)


def test_value_k_is_at_most_the_training_pictures():
    data = draw(20, 15)
    assert knn_accuracy(*data, classes=CLASSES) == knn_accuracy(*data, classes=CLASSES, k=20)


def test_value_perfect_clusters():
    y = torch.arange(8).repeat(5)
    x = 10 * torch.eye(8)[y] + 0.1 * torch.randn(40, 8)
    assert tuple(knn_accuracy(x, y, x + 0.1 * torch.randn(40, 8), y, classes=8, k=5)) == (100, 100)


def test_value_classes_without_a_vote_are_no_hits():
    x, one = torch.eye(3), torch.ones(3, dtype=torch.long)
    assert tuple(knn_accuracy(x, one, x, 0 * one, classes=6)) == (0, 0)


@pytest.mark.parametrize("chunk", [1, 7, 50, 1000])
def test_invariant_any_chunk_gives_the_same(chunk):
    data = draw(60, 50)
    assert knn_accuracy(*data, classes=CLASSES, k=9, chunk=chunk) == knn_accuracy(*data, classes=CLASSES, k=9)


@given(st.floats(0.01, 100), st.integers(0, 99))
def test_invariant_lengths_of_features_do_not_matter(scale, seed):
    train, train_labels, test, test_labels = draw(30, 10, seed)
    longer = knn_accuracy(train, train_labels, scale * test, test_labels, classes=CLASSES, k=7)
    assert longer == knn_accuracy(train, train_labels, test, test_labels, classes=CLASSES, k=7)


def test_value_a_cold_temperature_asks_the_nearest_alone():
    data = draw(40, 30)
    cold = knn_accuracy(*data, classes=CLASSES, tau=1e-4)
    assert cold.top1 == knn_accuracy(*data, classes=CLASSES, k=1).top1


def test_value_fewer_classes_than_five():
    assert knn_accuracy(*draw(30, 10, classes=2), classes=2).top5 == 100


def test_value_half_precision_is_compared_in_float():
    train, train_labels, test, test_labels = draw(40, 30)
    halves = train.half(), train_labels, test.half(), test_labels
    floats = train.half().float(), train_labels, test.half().float(), test_labels
    assert knn_accuracy(*halves, classes=CLASSES) == knn_accuracy(*floats, classes=CLASSES)


@pytest.mark.parametrize(("name", "value"), [("k", 0), ("tau", 0.0), ("chunk", -1)])
def test_error_values(name, value):
    with pytest.raises(ValueError, match=f"{name} must be positive, got {value}"):
        knn_accuracy(*draw(5, 5), classes=CLASSES, **{name: value})


def test_error_labels():
    with pytest.raises(ValueError, match="label"):
        knn_accuracy(*draw(50, 5), classes=2)


def test_value_of_few_classes_all_are_among_the_best_five():
    """Also those that no neighbour votes for."""
    train, labels = torch.eye(3), torch.arange(3)
    found = knn_accuracy(train, labels, train.roll(1, 0), labels, classes=3, k=1)
    assert found == (0.0, 100.0)
