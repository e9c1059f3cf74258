"""Logistic regression: the optimum that scikit-learn finds, and the scores of known cases."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.testing import assert_close

from samix.evaluate.logistic import fit_logistic, logistic_probe


def draw(pictures: int, spread: float, seed: int = 0, classes: int = 4):
    """Features around one centre per class, of very different scales, and their labels."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(classes).repeat(pictures // classes)
    noise = torch.randn(len(y), 6, generator=generator)
    return (4 * torch.eye(classes, 6)[y] + spread * noise) * torch.logspace(-2, 2, 6) + 3, y


def test_value_separable():
    score = logistic_probe(*draw(80, 0.1), *draw(40, 0.1, seed=1), classes=4)
    assert (score.top1, score.top5) == (100, 100)


@pytest.mark.parametrize("penalty", [1e-1, 1e-3])
def test_value_optimum_of_scikit_learn(penalty):
    x, y = draw(120, 3)
    x = ((x - x.mean(dim=0)) / x.std(dim=0)).double()
    other = LogisticRegression(C=1 / (len(x) * penalty), tol=1e-9, max_iter=5000).fit(x.numpy(), y.numpy())
    weight, bias = fit_logistic(x, y, 4, penalty)
    assert_close(weight, torch.from_numpy(other.coef_.T.copy()), atol=1e-4, rtol=1e-4)
    bias, theirs = (b - b.mean() for b in (bias, torch.from_numpy(other.intercept_)))
    assert_close(bias, theirs, atol=1e-4, rtol=1e-4)


def test_gradient_is_zero_at_the_optimum():
    x, y = draw(120, 3)
    x = ((x - x.mean(dim=0)) / x.std(dim=0)).double()
    weight, bias = fit_logistic(x, y, 4, 1e-3)
    error = ((x @ weight + bias).softmax(dim=1) - torch.eye(4)[y]) / len(x)  # [N, K]
    assert (x.T @ error + 1e-3 * weight).abs().max() < 1e-6
    assert error.sum(dim=0).abs().max() < 1e-6


def test_invariant_no_randomness():
    torch.manual_seed(1)
    first = logistic_probe(*draw(120, 3), *draw(80, 3, seed=1), classes=4)
    torch.manual_seed(2)
    assert logistic_probe(*draw(120, 3), *draw(80, 3, seed=1), classes=4) == first
    assert 25 < first.top1 < 100


def test_invariant_features_are_standardised():
    (train, y), (test, z) = draw(120, 3), draw(80, 3, seed=1)
    plain = logistic_probe(train, y, test, z, classes=4)
    moved = logistic_probe(100 * train.double() - 7, y, 100 * test.double() - 7, z, classes=4)
    assert tuple(moved) == pytest.approx(tuple(plain), abs=1e-4)


def test_invariant_a_constant_feature_changes_nothing():
    (train, y), (test, z) = draw(120, 3), draw(80, 3, seed=1)
    plain = logistic_probe(train, y, test, z, classes=4)
    train, test = (torch.cat([x, torch.full((len(x), 1), 0.3)], dim=1) for x in (train, test))
    assert tuple(logistic_probe(train, y, test, z, classes=4)) == pytest.approx(tuple(plain), abs=1e-4)


def test_value_works_where_gradients_are_off():
    with torch.no_grad():
        assert logistic_probe(*draw(80, 0.1), *draw(40, 0.1), classes=4).top1 == 100


def test_error_penalty():
    with pytest.raises(ValueError, match=r"penalty must be positive .* got 0"):
        logistic_probe(*draw(8, 1), *draw(8, 1), classes=4, penalty=0.0)


def test_error_labels():
    with pytest.raises(ValueError, match="label"):
        logistic_probe(*draw(8, 1), *draw(8, 1), classes=3)
