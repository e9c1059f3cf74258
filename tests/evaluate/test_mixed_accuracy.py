"""Accuracy under mixed labels, against a loop over images."""

import pytest
import torch

from samix.evaluate.mixed_accuracy import mixed_accuracy
from samix.mixups import MixUp


def test_value_soft_labels():
    outputs = torch.eye(3)[[0, 1, 2, 1]]
    targets = torch.tensor([[0.7, 0.3, 0.0], [0.6, 0.4, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    found = mixed_accuracy(outputs, targets)
    assert float(found.weighted) == pytest.approx(100 * (0.7 + 0.4 + 0.0 + 1.0) / 4)
    assert float(found.dominant) == pytest.approx(50.0)
    assert float(found.best) == pytest.approx(100 * (0.7 + 0.6 + 0.5 + 1.0) / 4)


def test_value_equals_the_lam_weighted_accuracies_of_a_pair():
    policy, y = MixUp(per_sample=True), torch.tensor([0, 1, 2, 3, 4, 0])
    mixed = policy(torch.rand(6, 3, 8, 8), policy.draw(6))
    outputs = torch.randn(6, 5)
    y_a, y_b, lam = mixed.labels(y)
    expected = 0.0
    for i, guess in enumerate(outputs.argmax(dim=1)):
        expected += float(lam[i] * (guess == y_a[i]) + (1 - lam[i]) * (guess == y_b[i]))
    found = mixed_accuracy(outputs, mixed.soft_labels(y, 5))
    assert float(found.weighted) == pytest.approx(100 * expected / 6, abs=1e-4)


def test_value_class_indices_give_the_usual_accuracy():
    found = mixed_accuracy(torch.eye(4), torch.tensor([0, 1, 2, 0]))
    assert float(found.weighted) == float(found.dominant) == 75.0
    assert float(found.best) == 100.0
