"""BYOL: the loss against a loop, and the momentum branch that comes to a halt."""

import pytest
import torch
from torch import Tensor, nn

from samix.methods.ssl.base import views_of
from samix.methods.ssl.byol import BYOLConfig


def loop_distance(predictions: Tensor, targets: Tensor) -> float:
    """Mean of |p / |p| - z / |z||^2."""
    rows = zip(predictions.detach(), targets, strict=True)
    return sum(float((p / p.norm() - z / z.norm()).square().sum()) for p, z in rows) / len(targets)


def test_value_clean_loss_against_a_loop(selfsup, two_views):
    method, (x, index) = selfsup("byol"), two_views()
    first, second = views_of(x, index)
    p_1, p_2 = (method.predictor(method.branch(view)) for view in (first, second))
    z_1, z_2 = method.momentum(first), method.momentum(second)
    expected = loop_distance(p_1, z_2) + loop_distance(p_2, z_1)
    assert method(x, index).encoder.item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("progress", "momentum"), [(0.0, 0.6), (0.5, 0.8), (1.0, 1.0)])
def test_value_momentum_rises_from_its_start_to_one(selfsup, two_views, progress, momentum):
    method = selfsup("byol", momentum=0.6)
    method(*two_views())
    before = {name: value.clone() for name, value in method.momentum.state_dict().items()}
    method.after_step(progress)
    trained = {name for name, _ in method.branch.named_parameters()}
    for name, value in method.momentum.state_dict().items():
        online = method.branch.state_dict()[name]
        expected = momentum * before[name] + (1 - momentum) * online if name in trained else before[name]
        torch.testing.assert_close(value, expected, msg=name)


def test_value_keys_are_the_second_views(selfsup, two_views):
    method, (x, index) = selfsup("byol"), two_views()
    first, second = views_of(x, index)
    seen = method.observe(first, second)
    torch.testing.assert_close(seen.keys, method.momentum(second))
    torch.testing.assert_close(seen.targets[0], seen.keys)


def test_shape_heads(selfsup):
    method = selfsup("byol")
    for head in (method.branch.projector, method.predictor):
        assert [type(layer) for layer in head] == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]
        assert head[0].bias is not None and head[3].bias is None
    assert list(method.momentum.state_dict()) == list(method.branch.state_dict())


def test_error_bad_settings_are_refused_by_name():
    with pytest.raises(ValueError, match=r"method\.momentum must lie in \[0, 1\], got -0.1"):
        BYOLConfig(momentum=-0.1)
