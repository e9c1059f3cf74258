"""Labels and losses of a mixed batch, and the blend."""

import pytest
import torch
from torch.nn import functional as F

from samix.core.mixed import Mixed, blend, check_labels, one_hot
from samix.core.pairing import Pairing
from samix.mixups.base import Policy

LABELS = torch.tensor([0, 3, 1, 3])
INDEX = torch.tensor([1, 2, 3, 0])


def mixed(lam: torch.Tensor) -> Mixed:
    return Mixed(torch.rand(4, 3, 8, 8), torch.rand(4, 1, 8, 8), Pairing(lam, INDEX))


@pytest.fixture(params=[[0.3], [0.0, 0.25, 0.7, 1.0]], ids=["one lam", "lam per sample"])
def lam(request) -> torch.Tensor:
    return torch.tensor(request.param)


def test_value_blend_against_a_loop():
    x, partner, mask = torch.rand(2, 3, 2, 3), torch.rand(2, 3, 2, 3), torch.rand(2, 1, 2, 3)
    out = blend(x, partner, mask)
    for b, c, h, w in torch.cartesian_prod(*(torch.arange(n) for n in x.shape)).tolist():
        weight = float(mask[b, 0, h, w])
        expected = weight * float(x[b, c, h, w]) + (1 - weight) * float(partner[b, c, h, w])
        assert float(out[b, c, h, w]) == pytest.approx(expected, abs=1e-6)


def test_gradient_blend_gives_the_mask_the_difference_of_the_images():
    x, partner = torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4)
    mask = torch.rand(2, 1, 4, 4, requires_grad=True)
    (grad,) = torch.autograd.grad(blend(x, partner, mask).sum(), mask)
    torch.testing.assert_close(grad, (x - partner).sum(dim=1, keepdim=True))


def test_value_labels(lam):
    y_a, y_b, weight = mixed(lam).labels(LABELS)
    assert y_a.tolist() == [0, 3, 1, 3] and y_b.tolist() == [3, 1, 3, 0]
    assert torch.equal(weight, lam)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_soft_labels_against_a_loop(lam, smoothing):
    rows = mixed(lam).soft_labels(LABELS, 5, smoothing)
    for i in range(4):
        weight = float(lam[i % len(lam)])
        expected = [0.0] * 5
        expected[LABELS[i]] += weight
        expected[LABELS[INDEX[i]]] += 1 - weight
        expected = [(1 - smoothing) * value + smoothing / 5 for value in expected]
        assert rows[i].tolist() == pytest.approx(expected, abs=1e-6)


def test_value_soft_labels_of_rows_equal_those_of_indices(lam):
    rows = F.one_hot(LABELS, 5).float()
    assert torch.equal(mixed(lam).soft_labels(rows, 5), mixed(lam).soft_labels(LABELS, 5))


def test_value_soft_labels_of_a_pair_of_one_class_stay_one_hot():
    rows = mixed(torch.tensor([0.3])).soft_labels(torch.tensor([2, 2, 2, 2]), 5)
    torch.testing.assert_close(rows, one_hot(torch.tensor([2, 2, 2, 2]), 5))


def cross_entropy(outputs, y):
    return F.cross_entropy(outputs, y, reduction="none")


def focal(outputs, y):
    """A criterion that is not linear in its target."""
    p = outputs.softmax(dim=1)[torch.arange(len(y)), y]
    return -((1 - p) ** 2) * p.log()


def test_value_loss_equals_soft_label_cross_entropy(lam):
    outputs = torch.randn(4, 5)
    expected = F.cross_entropy(outputs, mixed(lam).soft_labels(LABELS, 5))
    torch.testing.assert_close(mixed(lam).loss(cross_entropy, outputs, LABELS), expected)


@pytest.mark.parametrize("criterion", [cross_entropy, focal])
def test_value_loss_of_any_criterion_against_a_loop(lam, criterion):
    outputs = torch.randn(4, 5)
    total = 0.0
    for i in range(4):
        weight = float(lam[i % len(lam)])
        own, partner = LABELS[i : i + 1], LABELS[INDEX[i] : INDEX[i] + 1]
        total += weight * float(criterion(outputs[i : i + 1], own))
        total += (1 - weight) * float(criterion(outputs[i : i + 1], partner))
    assert float(mixed(lam).loss(criterion, outputs, LABELS)) == pytest.approx(total / 4, abs=1e-6)


def test_value_loss_of_dense_outputs_weighs_samples(lam):
    """A criterion may keep more axes than the batch, as in multi-label or dense problems."""
    outputs, y = torch.randn(4, 5, 2), torch.randn(4, 5, 2)
    loss = mixed(lam).loss(lambda a, b: (a - b) ** 2, outputs, y)
    weight = lam.expand(4)[:, None, None]
    expected = weight * (outputs - y) ** 2 + (1 - weight) * (outputs - y[INDEX]) ** 2
    torch.testing.assert_close(loss, expected.mean())


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_error_loss_refuses_a_reduced_criterion(lam, reduction):
    with pytest.raises(ValueError, match=r"one loss per sample.*batch of 4.*reduction='none'"):
        mixed(lam).loss(torch.nn.CrossEntropyLoss(reduction=reduction), torch.randn(4, 5), LABELS)


@pytest.mark.parametrize(("labels", "position"), [([0, 1, 5, 9], 2), ([0, -1, 2, 3], 1)])
def test_error_labels_out_of_range_are_named(labels, position):
    with pytest.raises(ValueError, match=rf"\[0, 4\].*label {labels[position]} at position {position}"):
        check_labels(torch.tensor(labels), 5)
    with pytest.raises(ValueError, match="Check the number of classes"):
        mixed(torch.tensor([0.5])).soft_labels(torch.tensor(labels), 5)


def test_value_labels_in_range_pass():
    check_labels(torch.tensor([0, 4]), 5)


@pytest.mark.usefixtures("unchecked_shapes")
def test_error_labels_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"got \[4, 1\] of torch.int64. Call y.squeeze\(1\)"):
        one_hot(torch.zeros(4, 1, dtype=torch.long), 5)
    with pytest.raises(ValueError, match=r"\[B, 5\] \(soft labels\); got \[4, 6\]"):
        one_hot(torch.zeros(4, 6), 5)
    with pytest.raises(ValueError, match=r"got \[4\] of torch.float32"):
        one_hot(torch.zeros(4), 5)


def test_error_a_policy_without_a_mask():
    with pytest.raises(TypeError, match="Policy must define mask"):
        Policy()(torch.rand(2, 3, 8, 8), Pairing(torch.tensor([0.5]), torch.tensor([1, 0])))
