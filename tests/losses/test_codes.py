"""SwAV's codes and swapped prediction."""

import math

import pytest
import torch

from samix.core.mixed import Parents
from samix.losses.codes import sinkhorn_codes, swapped_per_sample
from samix.losses.contrastive import over_parents


def loop_sinkhorn(scores: torch.Tensor, epsilon: float, rounds: int) -> torch.Tensor:
    batch, prototypes = scores.shape
    q = [[math.exp(float(scores[b, p]) / epsilon) for b in range(batch)] for p in range(prototypes)]
    total = sum(map(sum, q))
    q = [[value / total for value in row] for row in q]
    for _ in range(rounds):
        q = [[value / sum(row) / prototypes for value in row] for row in q]
        columns = [sum(q[p][b] for p in range(prototypes)) for b in range(batch)]
        q = [[q[p][b] / columns[b] / batch for b in range(batch)] for p in range(prototypes)]
    return torch.tensor([[q[p][b] * batch for p in range(prototypes)] for b in range(batch)])


@pytest.mark.parametrize(("batch", "prototypes"), [(6, 4), (3, 8), (1, 5)])
def test_value_codes_against_a_loop(batch, prototypes):
    scores = torch.rand(batch, prototypes, generator=torch.Generator().manual_seed(1)) - 0.5
    codes = sinkhorn_codes(scores)
    torch.testing.assert_close(codes, loop_sinkhorn(scores, 0.05, 3), atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(batch))


def test_value_prototypes_share_the_batch():
    scores = torch.rand(64, 4, generator=torch.Generator().manual_seed(1)) * 0.2
    scores[:, 0] += 0.3  # everybody's favourite
    assert sinkhorn_codes(scores, rounds=50).sum(dim=0).tolist() == pytest.approx([16.0] * 4, abs=0.5)


def test_shape_large_scores_do_not_overflow():
    codes = sinkhorn_codes(torch.tensor([[40.0, -40.0], [30.0, 35.0]]))
    assert codes.isfinite().all()
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(2))


def test_value_the_mixed_target_is_the_mixture_of_codes():
    scores, codes = torch.randn(3, 4), torch.softmax(torch.randn(3, 4), dim=1)
    lam, index = torch.tensor([0.2, 0.5, 1.0]), torch.tensor([1, 2, 0])
    expected = 0.0
    for i in range(3):
        target = lam[i] * codes[i] + (1 - lam[i]) * codes[index[i]]
        expected -= float((target * torch.log_softmax(scores[i] / 0.1, dim=0)).sum())
    pairs = Parents(torch.stack([torch.arange(3), index], dim=1), torch.stack([lam, 1 - lam], dim=1))
    found = over_parents(lambda positive: swapped_per_sample(scores, codes[positive], 0.1), pairs)
    assert float(found) == pytest.approx(expected / 3, rel=1e-5)


def test_value_swapped_prediction_against_a_loop():
    scores, codes = torch.randn(3, 4), torch.softmax(torch.randn(3, 4), dim=1)
    expected = []
    for s, code in zip(scores.tolist(), codes.tolist(), strict=True):
        total = sum(math.exp(value / 0.1) for value in s)
        expected.append(-sum(c * math.log(math.exp(v / 0.1) / total) for c, v in zip(code, s, strict=True)))
    assert swapped_per_sample(scores, codes, 0.1).tolist() == pytest.approx(expected, rel=1e-5)


def test_shape_half_precision_is_computed_in_float32():
    scores = torch.randn(3, 4).bfloat16()
    codes = sinkhorn_codes(scores)
    assert codes.dtype == swapped_per_sample(scores, codes).dtype == torch.float32
    assert swapped_per_sample(scores, codes, 0.001).isfinite().all()


def test_gradient_does_not_reach_the_codes():
    scores = torch.randn(4, 3, requires_grad=True)
    assert not sinkhorn_codes(scores).requires_grad
