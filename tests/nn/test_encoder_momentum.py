"""Momentum copies: the update of SAMix Eq. (14), over parameters only."""

import pytest
import torch
from torch import nn

from samix.nn.encoder import momentum_copy, momentum_update


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))


def test_value_a_copy_is_equal_apart_and_frozen():
    source = network()
    copy = momentum_copy(source)
    for (name, p), q in zip(source.named_parameters(), copy.parameters(), strict=True):
        assert torch.equal(p, q) and p is not q and p.data_ptr() != q.data_ptr(), name
        assert p.requires_grad and not q.requires_grad


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.999, 1.0])
def test_value_the_update_against_a_loop(momentum):
    target, source = momentum_copy(network()), network()
    before = [p.clone() for p in target.parameters()]
    momentum_update(target, source, momentum)
    for old, new, online in zip(before, target.parameters(), source.parameters(), strict=True):
        torch.testing.assert_close(new, momentum * old + (1 - momentum) * online.detach())
        assert not new.requires_grad


def test_value_the_source_and_the_buffers_stay_as_they_are():
    source = network()
    target = momentum_copy(source)
    source[1].running_mean.fill_(5)
    online, buffers = [p.clone() for p in source.parameters()], [b.clone() for b in target.buffers()]
    momentum_update(target, source, 0.5)
    assert all(torch.equal(a, b) for a, b in zip(online, source.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(buffers, target.buffers(), strict=True))


def test_gradient_flows_through_a_copy_but_not_into_it():
    copy = momentum_copy(network())
    x = torch.randn(2, 3, 2, 2, requires_grad=True)
    copy(x).square().sum().backward()
    assert x.grad is not None and x.grad.abs().max() > 0
    assert all(p.grad is None for p in copy.parameters())
