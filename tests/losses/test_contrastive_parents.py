"""The loss of mixed images is that of their parents, weighed sample by sample."""

import pytest
import torch

from samix.core.mixed import Mixed, Parents
from samix.core.pairing import Pairing
from samix.losses.contrastive import over_parents

TABLE = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))  # loss of image i with positive j


def look_up(positive: torch.Tensor) -> torch.Tensor:
    return TABLE[torch.arange(4), positive]


def of_pairs(lam: torch.Tensor, index: torch.Tensor) -> Parents:
    x = torch.zeros(4, 3, 2, 2)
    return Mixed(x, torch.ones(1, 1, 2, 2), Pairing(lam, index)).family()


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_pairs_against_a_loop(lam):
    index = torch.tensor([2, 0, 3, 1])
    expected = 0.0
    for i in range(4):
        weight = float(lam.expand(4)[i])
        expected += weight * float(TABLE[i, i]) + (1 - weight) * float(TABLE[i, index[i]])
    found = over_parents(look_up, of_pairs(lam, index))
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_value_many_parents_against_a_loop():
    """Three parents each, one of them twice, with shares that need not sum to 1."""
    index = torch.tensor([[0, 1, 2], [3, 3, 0], [1, 2, 3], [0, 0, 0]])
    share = torch.rand(4, 3)
    expected = sum(float(share[i, p] * TABLE[i, index[i, p]]) for i in range(4) for p in range(3))
    found = over_parents(look_up, Parents(index, share))
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_invariant_lam_one_is_the_mean_of_the_own_losses():
    found = over_parents(look_up, of_pairs(torch.ones(1), torch.tensor([2, 0, 3, 1])))
    torch.testing.assert_close(found, TABLE.diagonal().mean())


def test_gradient_is_shared_by_lam():
    losses = torch.zeros(4, 4, requires_grad=True)
    lam, index = torch.tensor([0.1, 0.5, 0.8, 1.0]), torch.tensor([2, 0, 3, 1])
    over_parents(lambda positive: losses[torch.arange(4), positive], of_pairs(lam, index)).backward()
    expected = torch.zeros(4, 4)
    for i in range(4):
        expected[i, i], expected[i, index[i]] = lam[i] / 4, (1 - lam[i]) / 4
    torch.testing.assert_close(losses.grad, expected)
