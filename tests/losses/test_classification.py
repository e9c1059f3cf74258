"""Cross-entropies for clean and mixed labels, against loops."""

import math

import pytest
import torch
from torch.nn import functional as F

from samix.core.mixed import Mixed, one_hot
from samix.core.pairing import Pairing
from samix.losses import cross_entropy, mixup_cross_entropy, soft_binary_cross_entropy
from samix.losses.classification import mixup_cross_entropy_per_sample

CLASSES = 5
Y = torch.tensor([0, 3, 1, 3, 4])
INDEX = torch.tensor([1, 3, 4, 2, 0])  # the second pair has one class


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(5, CLASSES) * 3


@pytest.fixture(params=[[0.3], [0.0, 0.2, 0.5, 0.9, 1.0]], ids=["one lam", "lam per sample"])
def pairing(request) -> Pairing:
    return Pairing(torch.tensor(request.param), INDEX)


def log_softmax(row: list[float]) -> list[float]:
    total = sum(math.exp(v) for v in row)
    return [v - math.log(total) for v in row]


def soft_rows(pairing: Pairing, smoothing: float = 0.0) -> torch.Tensor:
    images = torch.zeros(5, 3, 1, 1)
    return Mixed(images, torch.zeros(1, 1, 1, 1), pairing).soft_labels(Y, CLASSES, smoothing)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_cross_entropy_against_a_loop(logits, smoothing):
    total = 0.0
    for row, label in zip(logits.tolist(), Y.tolist(), strict=True):
        for c, log_p in enumerate(log_softmax(row)):
            target = (1 - smoothing) * (c == label) + smoothing / CLASSES
            total -= target * log_p
    assert float(cross_entropy(logits, Y, smoothing)) == pytest.approx(total / 5, rel=1e-5)


def test_value_cross_entropy_takes_soft_labels(logits):
    torch.testing.assert_close(cross_entropy(logits, one_hot(Y, CLASSES)), cross_entropy(logits, Y))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_mixup_cross_entropy_against_a_loop(logits, pairing, smoothing):
    total = 0.0
    for i, row in enumerate(logits.tolist()):
        lam, log_p = float(pairing.lam[i % len(pairing.lam)]), log_softmax(row)
        hard = -lam * log_p[Y[i]] - (1 - lam) * log_p[Y[INDEX[i]]]
        total += (1 - smoothing) * hard - smoothing * sum(log_p) / CLASSES
    assert float(mixup_cross_entropy(logits, Y, pairing, smoothing)) == pytest.approx(total / 5, rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_mixup_cross_entropy_equals_that_of_smoothed_soft_labels(logits, pairing, smoothing):
    expected = F.cross_entropy(logits, soft_rows(pairing, smoothing))
    torch.testing.assert_close(mixup_cross_entropy(logits, Y, pairing, smoothing), expected)


def test_value_lam_one_is_the_clean_loss(logits):
    loss = mixup_cross_entropy(logits, Y, Pairing(torch.ones(1), INDEX))
    torch.testing.assert_close(loss, cross_entropy(logits, Y))


def test_shape_per_sample(logits, pairing):
    losses = mixup_cross_entropy_per_sample(logits, Y, pairing)
    assert losses.shape == (5,)
    torch.testing.assert_close(losses.mean(), mixup_cross_entropy(logits, Y, pairing))


def test_value_soft_binary_cross_entropy_against_a_loop(logits, pairing):
    targets, total = soft_rows(pairing), 0.0
    for row, target in zip(logits.tolist(), targets.tolist(), strict=True):
        for v, t in zip(row, target, strict=True):
            p = 1 / (1 + math.exp(-v))
            total -= t * math.log(p) + (1 - t) * math.log(1 - p)
    assert float(soft_binary_cross_entropy(logits, targets)) == pytest.approx(total / 5, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_value_half_precision_logits_give_float32_losses(logits, pairing, dtype):
    half = logits.to(dtype)
    for loss in (
        cross_entropy(half, Y),
        mixup_cross_entropy(half, Y, pairing),
        soft_binary_cross_entropy(half, soft_rows(pairing)),
    ):
        assert loss.dtype == torch.float32
    expected = mixup_cross_entropy(half.float(), Y, pairing)
    assert torch.equal(mixup_cross_entropy(half, Y, pairing), expected)


def test_gradient_of_mixup_cross_entropy_is_softmax_minus_label(logits, pairing):
    logits.requires_grad_()
    (grad,) = torch.autograd.grad(mixup_cross_entropy(logits, Y, pairing), logits)
    torch.testing.assert_close(grad, (logits.softmax(dim=1).detach() - soft_rows(pairing)) / 5)


def test_gradient_of_soft_binary_cross_entropy_is_sigmoid_minus_label(logits, pairing):
    logits.requires_grad_()
    targets = soft_rows(pairing)
    (grad,) = torch.autograd.grad(soft_binary_cross_entropy(logits, targets), logits)
    torch.testing.assert_close(grad, (logits.sigmoid().detach() - targets) / 5)


def golden_pairing(record: dict[str, torch.Tensor], lam: torch.Tensor, kind: str) -> Pairing:
    """An index that sends every y_a of the record to its y_b."""
    y_a = record["y_a"].tolist()
    y_b = record["y_b_distinct" if kind == "distinct" else "y_b"].tolist()
    return Pairing(lam, torch.tensor([y_a.index(label) for label in y_b]))


@pytest.mark.parametrize("kind", ["distinct", "withsame"])
@pytest.mark.parametrize("lam", [0.5, 0.9])
def test_value_golden_mixup_cross_entropy(golden, kind, lam):
    """The official eta, `neg_weight` of the soft cross-entropy, changes nothing (O1): one value for all."""
    record = golden("d_mixup_cls_losses")
    pairing = golden_pairing(record, torch.tensor([lam]), kind)
    logits = record["logits"].requires_grad_()
    loss = mixup_cross_entropy(logits, record["y_a"], pairing)
    (grad,) = torch.autograd.grad(loss, logits)
    for name in ("hardCE", "softCE_neg1", "softCE_neg0.5", "softCE_neg0.1", "softCE_neg0"):
        torch.testing.assert_close(loss.detach(), record[f"{kind}/lam{lam}/{name}/loss"])
        torch.testing.assert_close(grad, record[f"{kind}/lam{lam}/{name}/grad_logits"])


def test_value_golden_per_sample_lam(golden):
    """The soft form; the official hard form averages the samples before it weighs them with their lam."""
    record = golden("d_mixup_cls_losses")
    pairing = golden_pairing(record, record["lam_tensor"], "distinct")
    loss = mixup_cross_entropy(record["logits"], record["y_a"], pairing)
    torch.testing.assert_close(loss, record["distinct/lam_tensor/softCE_neg1/loss"])


@pytest.mark.parametrize("kind", ["distinct", "withsame"])
@pytest.mark.parametrize("lam", [0.5, 0.9])
def test_value_golden_binary_cross_entropy(golden, kind, lam):
    record = golden("d_mixup_cls_losses")
    rows = one_hot(record["y_a"], 10)
    partner = rows[golden_pairing(record, torch.tensor([lam]), kind).index]
    logits = record["logits"].requires_grad_()
    soft = soft_binary_cross_entropy(logits, lam * rows + (1 - lam) * partner)
    (grad,) = torch.autograd.grad(soft, logits)
    torch.testing.assert_close(soft.detach(), record[f"{kind}/lam{lam}/BCE_neg1/loss"])
    torch.testing.assert_close(grad, record[f"{kind}/lam{lam}/BCE_neg1/grad_logits"])
    two_hot = soft_binary_cross_entropy(logits, rows + partner)  # a pair of one class gets 2
    torch.testing.assert_close(two_hot.detach(), record[f"{kind}/lam{lam}/BCE_twohot/loss"])


def test_value_golden_clean_cross_entropy(golden):
    record = golden("d_mixup_cls_losses")
    loss = cross_entropy(record["logits"], record["y_a"])
    torch.testing.assert_close(loss, record["onehotCE/loss"])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_value_labels_of_any_integer_type(logits, pairing, dtype):
    short = Y.to(dtype)
    expected = mixup_cross_entropy(logits, Y, pairing)
    torch.testing.assert_close(mixup_cross_entropy(logits, short, pairing), expected)
    torch.testing.assert_close(cross_entropy(logits, short), cross_entropy(logits, Y))


def test_error_negative_labels_do_not_count_from_the_end(logits, pairing):
    with pytest.raises(RuntimeError, match="out of bounds"):
        mixup_cross_entropy(logits, Y - 1 - Y.max(), pairing)
