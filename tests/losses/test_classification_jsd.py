"""The consistency loss of AugMix, against a loop and the original's formula."""

import math

import pytest
import torch
from torch.nn import functional as F

from samix.losses.classification import jensen_shannon


@pytest.fixture
def views() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.randn(5, 7) * 3, torch.randn(5, 7) * 3, torch.randn(5, 7) * 3


def softmax(row: list[float]) -> list[float]:
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


def test_value_against_a_loop(views):
    total = 0.0
    for rows in zip(*(view.tolist() for view in views), strict=True):
        p = [softmax(row) for row in rows]
        for k in range(7):
            mean = min(max(sum(q[k] for q in p) / 3, 1e-7), 1)
            total += sum(q[k] * (math.log(q[k]) - math.log(mean)) for q in p) / 3
    assert float(jensen_shannon(*views)) == pytest.approx(total / 5, rel=1e-5)


def test_value_and_gradient_of_the_original_formula(views):
    """Three `kl_div` with reduction 'batchmean' against the clamped mean."""
    for view in views:
        view.requires_grad_()
    p = [view.softmax(dim=1) for view in views]
    log_mean = (sum(p) / 3).clamp(1e-7, 1).log()
    expected = sum(F.kl_div(log_mean, q, reduction="batchmean") for q in p) / 3
    loss = jensen_shannon(*views)
    torch.testing.assert_close(loss, expected)
    for ours, theirs in zip(
        torch.autograd.grad(loss, views), torch.autograd.grad(expected, views), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
        assert ours.abs().max() > 0  # the clean view learns, too


def test_value_equal_views_cost_nothing(views):
    assert float(jensen_shannon(views[0], views[0], views[0])) == pytest.approx(0, abs=1e-6)


def test_value_the_mean_is_clamped_as_in_the_original():
    """20000 classes of probability 1e-8, below the clamp: even equal views then cost a little less than 0."""
    logits = torch.full((1, 20001), math.log(1e-8))
    logits[0, 0] = 0
    expected = 20000 * 1e-8 * math.log(1e-8 / 1e-7)
    assert float(jensen_shannon(logits, logits, logits)) == pytest.approx(expected, rel=1e-2)


def test_invariant_order_and_bounds(views):
    one, two, three = views
    loss = jensen_shannon(one, two, three)
    torch.testing.assert_close(loss, jensen_shannon(three, one, two))
    assert 0 < float(loss) < math.log(3)


def test_value_contradicting_views_cost_log_three():
    rows = torch.eye(3) * 200
    loss = jensen_shannon(rows[:1], rows[1:2], rows[2:])
    assert float(loss) == pytest.approx(math.log(3), rel=1e-5)


def test_gradient_is_finite_where_probabilities_vanish():
    """Softmax of these logits is exactly 0 in float32, where p log p has no slope of its own."""
    views = [(torch.eye(3)[i : i + 1] * 300).requires_grad_() for i in range(3)]
    assert (views[0].softmax(dim=1) == 0).any()
    for grad in torch.autograd.grad(jensen_shannon(*views), views):
        assert grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_value_half_precision_logits_give_float32_losses(views, dtype):
    half = [view.to(dtype) for view in views]
    loss = jensen_shannon(*half)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, jensen_shannon(*(view.float() for view in half)))


def test_error_sizes_must_agree(views):
    with pytest.raises(Exception, match="logits_1|shape|size"):
        jensen_shannon(views[0], views[1][:4], views[2])
