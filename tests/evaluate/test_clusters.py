"""Quality of clusters against a slow loop and cases known by heart."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.evaluate.clusters import ClusterQuality, cluster_quality

pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 3)), min_size=1, max_size=40)


def slow_purity(labels: list[int], truth: list[int]) -> float:
    """Each cluster votes for its most frequent class, one picture at a time."""
    right = 0
    for cluster in set(labels):
        members = [true for label, true in zip(labels, truth, strict=True) if label == cluster]
        right += Counter(members).most_common(1)[0][1]
    return right / len(labels)


@given(pairs)
def test_value_purity(pictures):
    labels, truth = (torch.tensor(column) for column in zip(*pictures, strict=True))
    assert cluster_quality(labels, truth).purity == pytest.approx(
        slow_purity(labels.tolist(), truth.tolist())
    )


def test_value_mutual_information():
    """2 of 3 in each cluster are right: I = log 2 - H(1/3), both entropies are log 2."""
    labels, truth = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, 0])
    shares = torch.tensor([1 / 3, 2 / 3])
    expected = 1 + float((shares * shares.log()).sum()) / torch.log(torch.tensor(2.0)).item()
    quality = cluster_quality(labels, truth)
    assert quality.nmi == pytest.approx(expected) and quality.purity == pytest.approx(2 / 3)


@given(pairs, st.permutations(range(6)))
def test_invariant_names_of_clusters_do_not_matter(pictures, names):
    labels, truth = (torch.tensor(column) for column in zip(*pictures, strict=True))
    quality = cluster_quality(labels, truth)
    assert cluster_quality(torch.tensor(names)[labels] * 1000, truth) == pytest.approx(quality)
    assert -1e-9 <= quality.nmi <= 1 + 1e-9 and 0 < quality.purity <= 1


def test_value_extremes():
    truth = torch.arange(4).repeat(5)
    assert cluster_quality(3 - truth, truth) == pytest.approx(ClusterQuality(1.0, 1.0))
    assert cluster_quality(torch.zeros_like(truth), truth) == pytest.approx(ClusterQuality(0.0, 0.25))
    assert cluster_quality(torch.arange(20), truth).purity == 1


def test_error_no_pictures():
    with pytest.raises(ValueError, match="at least 1 picture, got none"):
        cluster_quality(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
