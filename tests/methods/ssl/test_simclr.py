"""SimCLR: NT-Xent against a loop over all views of the batch."""

import math

import pytest
import torch
from torch import Tensor

from samix.methods.ssl.base import views_of
from samix.methods.ssl.simclr import SimCLRConfig


def loop_nt_xent(z: Tensor, tau: float) -> float:
    """Mean over the first views' anchors plus mean over the second views'; z holds both."""
    z, count, total = [row / row.norm() for row in z.detach()], len(z) // 2, 0.0
    for anchor in range(2 * count):
        positive = (anchor + count) % (2 * count)
        others = [n for n in range(2 * count) if n != anchor]
        weights = {n: math.exp(float(z[anchor] @ z[n]) / tau) for n in others}
        total -= math.log(weights[positive] / sum(weights.values())) / count
    return total


def test_value_clean_loss_against_a_loop(selfsup, two_views):
    method, (x, index) = selfsup("simclr"), two_views()
    expected = loop_nt_xent(method.branch(x), 0.1)
    assert method(x, index).encoder.item() == pytest.approx(expected, rel=1e-4)


def test_value_one_softmax_against_a_loop(selfsup, two_views):
    """i-Mix's N-pair form: only the other view's embeddings are negatives."""
    method, (x, index) = selfsup("simclr"), two_views()
    seen, positive = method.observe(*views_of(x, index)), torch.tensor([2, 0, 3, 3])
    z, t = seen.predictions[0].detach(), seen.targets[0].detach()
    expected = []
    for i, j in enumerate(positive.tolist()):
        weights = [math.exp(float(z[i] @ t[n]) / 0.1) for n in range(4)]
        expected.append(-math.log(weights[j] / sum(weights)))
    found = method.shared_contrast(*seen.predictions[:1], *seen.targets[:1], positive, seen)
    assert found.tolist() == pytest.approx(expected, rel=1e-4)


def test_value_both_views_share_one_pass(selfsup, two_views):
    method, sizes = selfsup("simclr"), []
    method.branch.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    method(*two_views())
    assert sizes == [8]


def test_gradient_reaches_both_views(selfsup, two_views):
    method, (x, index) = selfsup("simclr"), two_views()
    x.requires_grad_()
    method(x, index).encoder.backward()
    assert x.grad.flatten(1).abs().sum(dim=1).min() > 0


def test_invariant_views_may_be_swapped(selfsup, two_views):
    method, (x, index) = selfsup("simclr"), two_views()
    swapped = method(torch.cat(views_of(x, index)[::-1]), index).encoder
    torch.testing.assert_close(swapped, method(x, index).encoder, rtol=1e-4, atol=1e-5)


def test_value_settings(selfsup):
    assert SimCLRConfig().tau == 0.1 and not list(selfsup("simclr").branch.projector[-1].bias.nonzero())
    with pytest.raises(ValueError, match=r"method\.tau must be positive, got -1.0"):
        SimCLRConfig(tau=-1.0)
