"""SimSiam: the loss against a loop, and where its gradient stops."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.methods.ssl.base import views_of


def loop_cosine(predictions: Tensor, targets: Tensor) -> float:
    rows = zip(predictions.detach(), targets.detach(), strict=True)
    return sum(float(p @ z / p.norm() / z.norm()) for p, z in rows) / len(targets)


def test_value_clean_loss_against_a_loop(selfsup, two_views):
    method, (x, index) = selfsup("simsiam"), two_views()
    z_1, z_2 = (method.branch(view) for view in views_of(x, index))
    p_1, p_2 = method.predictor(z_1), method.predictor(z_2)
    expected = -(loop_cosine(p_1, z_2) + loop_cosine(p_2, z_1)) / 2
    assert method(x, index).encoder.item() == pytest.approx(expected, rel=1e-4)


def weight_gradient(method, views, *, stop: bool) -> Tensor:
    z_1, z_2 = (method.branch(view) for view in views)
    t_1, t_2 = (z_1.detach(), z_2.detach()) if stop else (z_1, z_2)
    cosines = F.cosine_similarity(method.predictor(z_1), t_2) + F.cosine_similarity(
        method.predictor(z_2), t_1
    )
    return torch.autograd.grad(-cosines.mean() / 2, method.branch.projector[0].weight)[0]


def test_gradient_stops_at_the_target(selfsup, two_views, gradients):
    method, (x, index) = selfsup("simsiam"), two_views()
    found = gradients(method(x, index).encoder, method)["branch.projector.0.weight"]
    views = views_of(x, index)
    torch.testing.assert_close(found, weight_gradient(method, views, stop=True), rtol=1e-3, atol=1e-5)
    assert (found - weight_gradient(method, views, stop=False)).abs().max() > 1e-3


def test_value_the_predictor_has_a_constant_learning_rate(selfsup):
    method = selfsup("simsiam")
    groups = method.parameter_groups()
    assert list(groups) == ["encoder", "constant"]
    assert [id(p) for p in groups["constant"]] == [id(p) for p in method.predictor.parameters()]
    assert [id(p) for p in groups["encoder"]] == [id(p) for p in method.branch.parameters()]


def test_shape_heads(selfsup):
    method, hidden = selfsup("simsiam"), [nn.Linear, nn.BatchNorm1d, nn.ReLU]
    projector, predictor = method.branch.projector, method.predictor
    assert [type(layer) for layer in projector] == [*hidden, *hidden, nn.Linear, nn.BatchNorm1d]
    assert all(layer.bias is None for layer in projector if isinstance(layer, nn.Linear))
    assert not list(projector[-1].parameters())
    assert [type(layer) for layer in predictor] == [*hidden, nn.Linear]
    assert predictor[0].bias is None and predictor[3].bias is not None


def test_invariant_no_momentum_branch_and_no_queue(selfsup, two_views):
    method = selfsup("simsiam")
    before = {name: value.clone() for name, value in method.state_dict().items()}
    method.after_step(0.5)
    assert method.momentum is None and method.queue is None
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
