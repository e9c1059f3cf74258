"""In-batch contrast against loops, and the optimum that one shared softmax has."""

import math

import pytest
import torch
from torch.nn import functional as F

from samix.losses.in_batch import in_batch_nce, in_batch_nce_per_sample, nt_xent
from samix.losses.info_nce import mixup_info_nce
from samix.pairing import Pairing

INDEX = torch.tensor([2, 0, 3, 1])
LAMS = [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])]


def unit(count: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)), dim=1)


def loop_softmax(
    anchor: torch.Tensor, positive: torch.Tensor, others: list[torch.Tensor], tau: float
) -> float:
    """-log softmax of the positive among itself and the others."""
    top = math.exp(float(anchor @ positive) / tau)
    return -math.log(top / (top + sum(math.exp(float(anchor @ other) / tau) for other in others)))


@pytest.mark.parametrize("lam", LAMS)
def test_value_in_batch_against_a_loop(lam):
    query, keys, tau = unit(4), unit(4, 1), 0.5
    expected = 0.0
    for i in range(4):
        for j, weight in ((i, float(lam.expand(4)[i])), (int(INDEX[i]), 1 - float(lam.expand(4)[i]))):
            expected += weight * loop_softmax(
                query[i], keys[j], [k for n, k in enumerate(keys) if n != j], tau
            )
    found = in_batch_nce(query, keys, tau, Pairing(lam, INDEX))
    assert float(found) == pytest.approx(2 * tau * expected / 4, rel=1e-5)


def loop_nt_xent(first: torch.Tensor, second: torch.Tensor, i: int, tau: float) -> float:
    total = 0.0
    for anchors, others in ((first, second), (second, first)):
        rest = [k for n, k in enumerate(others) if n != i] + [k for n, k in enumerate(anchors) if n != i]
        total += loop_softmax(anchors[i], others[i], rest, tau)
    return total


def test_value_nt_xent_against_a_loop():
    first, second = unit(4), unit(4, 1)
    expected = sum(loop_nt_xent(first, second, i, 0.1) for i in range(4)) / 4
    assert float(nt_xent(first, second, 0.1)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("lam", LAMS)
def test_value_mixed_nt_xent_against_a_loop(lam):
    first, second = unit(4), unit(4, 1)
    expected = 0.0
    for i in range(4):
        weight = float(lam.expand(4)[i])
        expected += weight * loop_nt_xent(first, second, i, 0.1)
        expected += (1 - weight) * loop_nt_xent(first, second[INDEX], i, 0.1)
    assert float(nt_xent(first, second, 0.1, Pairing(lam, INDEX))) == pytest.approx(expected / 4, rel=1e-5)


def test_invariant_one_softmax_and_two_have_different_optima():
    """Two keys, lam = .7: one softmax shares its mass by lam; two with the queue pull to the heavier key."""
    keys, pairing = torch.eye(3)[:2], Pairing(torch.tensor([0.7, 0.7]), torch.tensor([1, 0]))
    negatives = torch.eye(3)[2:]

    def optimum(loss) -> float:
        z = torch.zeros(2, 3, requires_grad=True)
        optimizer = torch.optim.Adam([z], lr=0.05)
        for _ in range(400):
            optimizer.zero_grad()
            loss(z).backward()
            optimizer.step()
        return float(torch.sigmoid(z[0, 0] - z[0, 1]).detach())

    shared = optimum(lambda z: in_batch_nce_per_sample(z, keys, pairing, 1.0).mean())
    apart = optimum(lambda z: mixup_info_nce(z, keys, negatives, pairing, 1.0))
    assert shared == pytest.approx(0.7, abs=0.01)
    assert abs(apart - 0.7) > 0.05
