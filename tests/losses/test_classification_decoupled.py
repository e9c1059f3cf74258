"""The decoupled regularizer of Decoupled Mixup, against a loop."""

import math

import pytest
import torch

from samix.core.mixed import Mixed, Parents
from samix.core.pairing import Pairing
from samix.losses import LabelLoss, decoupled_cross_entropy, mixup_cross_entropy

CLASSES = 5
Y, INDEX = torch.tensor([2, 0, 4, 0, 1]), torch.tensor([2, 3, 4, 0, 1])  # images 1 and 3 have one class


@pytest.fixture
def logits() -> torch.Tensor:
    return 3 * torch.randn(len(Y), CLASSES, generator=torch.Generator().manual_seed(1))


def mixture(lam: list[float], parents: Parents | None = None) -> Mixed:
    return Mixed(torch.zeros(5, 3, 1, 1), torch.zeros(1, 1, 1, 1), Pairing(torch.tensor(lam), INDEX), parents)


def slow(logits: torch.Tensor, rows: torch.Tensor) -> float:
    """Class by class: e^(v_i) against e^(v_c) of every class c that the picture does not show."""
    total = 0.0
    for values, row in zip(logits.tolist(), rows.tolist(), strict=True):
        shown = [c for c in range(CLASSES) if row[c] > 1e-3]
        others = sum(math.exp(values[c]) for c in range(CLASSES) if c not in shown)
        for c in shown if len(shown) > 1 else []:
            total -= math.log(math.exp(values[c]) / (math.exp(values[c]) + others))
    return total / len(rows)


@pytest.mark.parametrize("lam", [[0.3], [0.0, 0.2, 0.5, 0.9, 1.0], [0.9995, 0.5, 0.0005, 0.5, 0.5]])
def test_value_against_a_loop(logits, lam):
    rows = mixture(lam).soft_labels(Y, CLASSES)
    assert float(decoupled_cross_entropy(logits, rows)) == pytest.approx(slow(logits, rows), rel=1e-5)


def test_value_three_classes_are_decoupled_from_each_other(logits):
    index = torch.stack([torch.arange(5), INDEX, INDEX[INDEX]], dim=1)
    rows = mixture([0.5], Parents(index, torch.tensor([0.5, 0.3, 0.2]).expand(5, 3))).soft_labels(Y, CLASSES)
    assert (rows > 0).sum(dim=1).max() == 3
    assert float(decoupled_cross_entropy(logits, rows)) == pytest.approx(slow(logits, rows), rel=1e-5)


def test_invariant_shares_do_not_matter_and_classes_do_not_compete(logits):
    rows = torch.eye(CLASSES)[0] * 0.9 + torch.eye(CLASSES)[1] * 0.1
    swapped = torch.eye(CLASSES)[0] * 0.1 + torch.eye(CLASSES)[1] * 0.9
    loss = decoupled_cross_entropy(logits[:1], rows[None])
    assert torch.equal(loss, decoupled_cross_entropy(logits[:1], swapped[None]))
    raised = logits[:1].clone()
    raised[0, 0] += 5  # more of one class: mixup cross-entropy would take it from the other
    assert decoupled_cross_entropy(raised, rows[None]) < loss


def test_value_pictures_of_one_class_cost_nothing(logits):
    assert decoupled_cross_entropy(logits, torch.eye(CLASSES)[Y]) == 0


def test_gradient_is_finite_where_every_class_is_shown():
    logits = torch.randn(3, 2, requires_grad=True)
    loss = decoupled_cross_entropy(logits, torch.full((3, 2), 0.5))
    (grad,) = torch.autograd.grad(loss, logits)
    assert loss == 0 and (grad == 0).all()


def test_gradient_pulls_both_classes_up_and_all_others_down(logits):
    logits.requires_grad_()
    loss = decoupled_cross_entropy(logits, mixture([0.3]).soft_labels(Y, CLASSES))
    (grad,) = torch.autograd.grad(loss, logits)
    for row, (own, other) in enumerate(zip(Y.tolist(), Y[INDEX].tolist(), strict=True)):
        if own == other:
            assert (grad[row] == 0).all()
            continue
        for c in range(CLASSES):
            assert grad[row, c] < 0 if c in (own, other) else grad[row, c] > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_value_half_precision_logits_give_float32_losses(logits, dtype):
    rows, half = mixture([0.3]).soft_labels(Y, CLASSES), logits.to(dtype)
    assert torch.equal(decoupled_cross_entropy(half, rows), decoupled_cross_entropy(half.float(), rows))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_the_labels_loss_adds_eta_times_it(logits, smoothing):
    mixed = mixture([0.3])
    loss = LabelLoss(CLASSES, smoothing, decoupled=0.25).mixed(logits, mixed, Y)
    expected = mixup_cross_entropy(logits, Y, mixed.pairing, smoothing)
    rows = mixed.soft_labels(Y, CLASSES)  # smoothed ones would show every class
    torch.testing.assert_close(loss, expected + 0.25 * decoupled_cross_entropy(logits, rows))
    plain = LabelLoss(CLASSES, smoothing)
    assert torch.equal(LabelLoss(CLASSES, smoothing, decoupled=0.25).clean(logits, Y), plain.clean(logits, Y))
    assert torch.equal(plain.mixed(logits, mixed, Y), expected)
