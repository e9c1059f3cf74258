"""MoCo v3: contrast with the keys of the batch, against a loop."""

import math

import pytest
import torch
from torch import Tensor, nn

from samix.methods.ssl.base import views_of
from samix.methods.ssl.mocov3 import MoCoV3Config


def loop_contrast(queries: Tensor, keys: Tensor, tau: float) -> float:
    """2 tau CE of the own key among all keys of the batch, mean over the queries."""
    q, k = ([row / row.norm() for row in rows.detach()] for rows in (queries, keys))
    total = 0.0
    for i in range(len(q)):
        weights = [math.exp(float(q[i] @ key) / tau) for key in k]
        total -= 2 * tau * math.log(weights[i] / sum(weights))
    return total / len(q)


@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_value_clean_loss_against_a_loop(selfsup, two_views, tau):
    method, (x, index) = selfsup("moco-v3", tau=tau), two_views()
    first, second = views_of(x, index)
    q_1, q_2 = (method.predictor(method.branch(view)) for view in (first, second))
    k_1, k_2 = method.momentum(first), method.momentum(second)
    expected = loop_contrast(q_1, k_2, tau) + loop_contrast(q_2, k_1, tau)
    assert method(x, index).encoder.item() == pytest.approx(expected, rel=1e-4)


def test_value_momentum_rises_to_one(selfsup):
    method = selfsup("moco-v3", momentum=0.6)
    for progress, momentum in ((0.0, 0.6), (0.5, 0.8), (1.0, 1.0)):
        before = [p.clone() for p in method.momentum.parameters()]
        method.after_step(progress)
        for old, new, online in zip(
            before, method.momentum.parameters(), method.branch.parameters(), strict=True
        ):
            torch.testing.assert_close(new, momentum * old + (1 - momentum) * online.detach())


def layers(head: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in head]


def test_shape_heads_of_resnets_and_transformers(selfsup):
    hidden = ["Linear", "BatchNorm1d", "ReLU"]
    resnet = selfsup("moco-v3")
    assert layers(resnet.branch.projector) == [*hidden, "Linear", "BatchNorm1d"]
    assert layers(resnet.predictor) == [*hidden, "Linear"]
    assert not list(resnet.branch.projector[-1].parameters())
    transformer = selfsup("moco-v3", layers=3, predictor_norm=True)
    assert layers(transformer.branch.projector) == [*hidden, *hidden, "Linear", "BatchNorm1d"]
    assert layers(transformer.predictor) == [*hidden, "Linear", "BatchNorm1d"]
    for head in (resnet.predictor, transformer.branch.projector):
        assert all(layer.bias is None for layer in head if isinstance(layer, nn.Linear))


def test_invariant_the_momentum_branch_has_no_predictor(selfsup):
    method = selfsup("moco-v3")
    assert list(method.momentum.state_dict()) == list(method.branch.state_dict())
    assert not any("predictor" in name for name in method.momentum.state_dict())


def test_error_bad_settings_are_refused_by_name():
    with pytest.raises(ValueError, match=r"method\.tau must be positive, got 0"):
        MoCoV3Config(tau=0.0)
    with pytest.raises(ValueError, match=r"method\.momentum must lie in \[0, 1\], got 2"):
        MoCoV3Config(momentum=2.0)
