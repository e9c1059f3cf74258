"""The eta-balanced loss: its two terms, their minimum and how they hang together (SAMix Eqs. (6), (8))."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.pairing import Pairing
from samix.learned.losses import eta_balanced, pbce
from samix.losses import mixup_cross_entropy
from samix.losses.classification import mixup_cross_entropy_per_sample

Y = torch.tensor([0, 3, 1, 3, 4])
INDEX = torch.tensor([1, 3, 4, 2, 0])  # the second pair has one class
LAM = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0])


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(5, 6) * 3


def test_value_pbce_against_a_loop(logits):
    losses = pbce(logits, Y, Pairing(LAM, INDEX))
    for i, (row, lam) in enumerate(zip(logits.tolist(), LAM.tolist(), strict=True)):
        a, b = int(Y[i]), int(Y[INDEX[i]])
        p_a = math.exp(row[a]) / (math.exp(row[a]) + math.exp(row[b]))
        expected = 0.0 if a == b else -lam * math.log(p_a) - (1 - lam) * math.log(1 - p_a)
        assert float(losses[i]) == pytest.approx(expected, abs=1e-5)


def test_value_pbce_ignores_other_classes(logits):
    changed = logits.clone()
    changed[:, 2] += 7  # no pair has class 2
    assert torch.equal(pbce(logits, Y, Pairing(LAM, INDEX)), pbce(changed, Y, Pairing(LAM, INDEX)))


def test_value_pbce_is_zero_for_a_pair_of_one_class(logits):
    same = torch.full((5,), 2)
    logits.requires_grad_()
    losses = pbce(logits, same, Pairing(LAM, INDEX))
    assert losses.tolist() == [0.0] * 5
    (grad,) = torch.autograd.grad(losses.sum(), logits)
    assert (grad == 0).all()


@given(lam=st.floats(0.02, 0.98), shift=st.floats(-3, 3))
def test_invariant_pbce_is_smallest_where_the_probability_is_lam(lam, shift):
    best = math.log(lam / (1 - lam))
    logits = torch.tensor([[best, 0.0], [best + shift, 0.0]], dtype=torch.float64)
    y, index = torch.tensor([0, 0, 1]), torch.tensor([2, 2, 0])
    logits = torch.cat([logits, logits[:1]])
    losses = pbce(logits, y, Pairing(torch.tensor([lam], dtype=torch.float64), index))
    entropy = -lam * math.log(lam) - (1 - lam) * math.log(1 - lam)
    assert float(losses[0]) == pytest.approx(entropy, abs=1e-5)
    assert float(losses[1]) >= entropy - 1e-5


def test_gradient_pbce_is_sigmoid_minus_lam(logits):
    logits.requires_grad_()
    (grad,) = torch.autograd.grad(pbce(logits, Y, Pairing(LAM, INDEX)).sum(), logits)
    for i in (0, 2, 3, 4):
        a, b = int(Y[i]), int(Y[INDEX[i]])
        expected = torch.zeros(6)
        expected[a] = torch.sigmoid(logits[i, a] - logits[i, b]).detach() - LAM[i]
        expected[b] = -expected[a]
        torch.testing.assert_close(grad[i], expected, rtol=0, atol=1e-6)


def test_invariant_the_global_term_is_the_local_one_plus_the_other_classes(logits):
    pairing = Pairing(LAM, INDEX)
    rows = torch.arange(5)
    pair = torch.stack([logits[rows, Y], logits[rows, Y[INDEX]]], dim=1)
    others = logits.logsumexp(dim=1) - pair.logsumexp(dim=1)
    different = Y[INDEX] != Y
    globally = mixup_cross_entropy_per_sample(logits, Y, pairing)
    expected = pbce(logits, Y, pairing) + others
    torch.testing.assert_close(globally[different], expected[different])
    assert (others[different] >= 0).all()


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.5, 1.0])
def test_value_eta_balanced_adds_its_parts(logits, eta):
    pairing = Pairing(LAM, INDEX)
    loss = eta_balanced(logits, Y, pairing, eta)
    torch.testing.assert_close(loss.local, pbce(logits, Y, pairing).mean())
    torch.testing.assert_close(loss.globally, mixup_cross_entropy(logits, Y, pairing))
    torch.testing.assert_close(loss.total, loss.local + eta * loss.globally)


def test_gradient_eta_has_an_effect(logits):
    """O1: the official eta has none, neither on the loss nor on its gradient."""
    pairing = Pairing(LAM, INDEX)
    logits.requires_grad_()
    losses = [eta_balanced(logits, Y, pairing, eta).total for eta in (0.1, 0.5, 1.0)]
    grads = [torch.autograd.grad(loss, logits)[0] for loss in losses]
    assert losses[0] < losses[1] < losses[2]
    assert grads[0][:, 2].abs().max() > 0, "classes outside the pair are pushed down"
    torch.testing.assert_close(grads[1][:, 2], 5 * grads[0][:, 2])
    directions = [grad.flatten() / grad.norm() for grad in grads]
    assert float(directions[0] @ directions[2]) < 0.999, "eta changes more than the scale"


def test_value_large_logits_stay_finite():
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]], requires_grad=True)
    loss = eta_balanced(logits, torch.tensor([0, 1]), Pairing(torch.tensor([0.3]), torch.tensor([1, 0])), 0.5)
    (grad,) = torch.autograd.grad(loss.total, logits)
    assert loss.total.isfinite() and grad.isfinite().all()


def test_value_half_precision_logits_give_float32_losses(logits):
    loss = eta_balanced(logits.bfloat16(), Y, Pairing(LAM, INDEX), 0.5)
    assert {part.dtype for part in loss} == {torch.float32}


def test_value_labels_of_any_integer_type(logits):
    pairing = Pairing(LAM, INDEX)
    torch.testing.assert_close(pbce(logits, Y.to(torch.uint8), pairing), pbce(logits, Y, pairing))
