"""In-batch contrast against loops, and the optimum that one shared softmax has."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Parents
from samix.core.pairing import Pairing
from samix.losses.contrastive import in_batch_nce_per_sample, mixup_info_nce, nt_xent_per_sample, over_parents

INDEX = torch.tensor([2, 0, 3, 1])
OWN = torch.arange(4)
LAMS = [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])]


def unit(count: int, seed: int = 0) -> Tensor:
    return F.normalize(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)), dim=1)


def pairs(lam: Tensor, index: Tensor = INDEX) -> Parents:
    lam = lam.expand(len(index))
    own = torch.arange(len(index))
    return Parents(torch.stack([own, index], dim=1), torch.stack([lam, 1 - lam], dim=1))


def loop_softmax(anchor: Tensor, positive: Tensor, others: list[Tensor], tau: float) -> float:
    """-log softmax of the positive among itself and the others."""
    top = math.exp(float(anchor @ positive) / tau)
    return -math.log(top / (top + sum(math.exp(float(anchor @ other) / tau) for other in others)))


def without(rows: Tensor, place: int) -> list[Tensor]:
    return [row for number, row in enumerate(rows) if number != place]


def loop_nt_xent(first: Tensor, second: Tensor, i: int, j: int, tau: float) -> float:
    """Row i of the first view and row j of the second are each other's positive."""
    there = loop_softmax(first[i], second[j], without(second, j) + without(first, i), tau)
    back = loop_softmax(second[j], first[i], without(first, i) + without(second, j), tau)
    return there + back


@pytest.mark.parametrize("lam", LAMS)
def test_value_in_batch_against_a_loop(lam):
    query, keys, tau = unit(4), unit(4, 1), 0.5
    expected = 0.0
    for i in range(4):
        for j, weight in ((i, float(lam.expand(4)[i])), (int(INDEX[i]), 1 - float(lam.expand(4)[i]))):
            expected += weight * loop_softmax(query[i], keys[j], without(keys, j), tau)
    found = over_parents(lambda positive: in_batch_nce_per_sample(query, keys, positive, tau), pairs(lam))
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_value_more_keys_than_queries():
    """Keys of other processes, or a queue behind the keys of the batch, are negatives like all others."""
    query, keys, positive = unit(2), unit(7, 1), torch.tensor([5, 3])
    found = in_batch_nce_per_sample(query, keys, positive, 0.2)
    expected = [loop_softmax(query[i], keys[j], without(keys, j), 0.2) for i, j in ((0, 5), (1, 3))]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_value_nt_xent_against_a_loop():
    first, second = unit(4), unit(4, 1)
    found = nt_xent_per_sample(first, second, OWN, OWN, 0.1)
    assert found.tolist() == pytest.approx(
        [loop_nt_xent(first, second, i, i, 0.1) for i in range(4)], rel=1e-5
    )


@pytest.mark.parametrize("lam", LAMS)
def test_value_mixed_nt_xent_against_a_loop(lam):
    """lam NT-Xent on (z_m, z) + (1 - lam) NT-Xent on (z_m, z[index])."""
    first, second = unit(4), unit(4, 1)
    expected = 0.0
    for i in range(4):
        weight = float(lam.expand(4)[i])
        expected += weight * loop_nt_xent(first, second, i, i, 0.1)
        expected += (1 - weight) * loop_nt_xent(first, second[INDEX], i, i, 0.1)
    found = over_parents(lambda positive: nt_xent_per_sample(first, second, OWN, positive, 0.1), pairs(lam))
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_value_nt_xent_of_the_rows_of_one_process():
    """Rows 4 and 5 of all are ours; their positives are rows 5 and 4."""
    first, second = unit(6), unit(6, 1)
    found = nt_xent_per_sample(first, second, torch.tensor([4, 5]), torch.tensor([5, 4]), 0.1)
    expected = [loop_nt_xent(first, second, 4, 5, 0.1), loop_nt_xent(first, second, 5, 4, 0.1)]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_gradient_of_nt_xent_reaches_both_views():
    first, second = unit(4).requires_grad_(), unit(4, 1).requires_grad_()
    nt_xent_per_sample(first, second, OWN, OWN, 0.1).mean().backward()
    assert first.grad.isfinite().all() and first.grad.abs().min(dim=1).values.max() > 0
    assert second.grad.isfinite().all() and second.grad.abs().min(dim=1).values.max() > 0


def test_shape_half_precision_is_computed_in_float32():
    first, second = unit(4).bfloat16(), unit(4, 1).bfloat16()
    for tau in (0.1, 0.001):
        for found in (
            in_batch_nce_per_sample(first, second, OWN, tau),
            nt_xent_per_sample(first, second, OWN, OWN, tau),
        ):
            assert found.dtype == torch.float32 and found.isfinite().all() and found.shape == (4,)


def test_invariant_one_softmax_and_two_have_different_optima():
    """Two keys, lam = .7: one softmax shares its mass by lam; two with the queue pull to the heavier key."""
    keys, index, lam = torch.eye(3)[:2], torch.tensor([1, 0]), torch.tensor([0.7])
    negatives = torch.eye(3)[2:]

    def optimum(loss) -> float:
        z = torch.zeros(2, 3, requires_grad=True)
        optimizer = torch.optim.Adam([z], lr=0.05)
        for _ in range(400):
            optimizer.zero_grad()
            loss(z).backward()
            optimizer.step()
        return float(torch.sigmoid(z[0, 0] - z[0, 1]).detach())

    def one(z: Tensor) -> Tensor:
        return over_parents(lambda p: in_batch_nce_per_sample(z, keys, p, 1.0), pairs(lam, index))

    shared = optimum(one)
    apart = optimum(lambda z: mixup_info_nce(z, keys, negatives, Pairing(lam, index), 1.0))
    assert shared == pytest.approx(0.7, abs=0.01)
    assert abs(apart - 0.7) > 0.05
