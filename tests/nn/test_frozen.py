"""Networks held still: eval mode, no gradients, and afterwards everything as it was."""

import pytest
import torch
from torch import nn

from samix.nn.frozen import freeze, run_frozen


@pytest.fixture
def network() -> nn.Sequential:
    """Convolution, batch norm, dropout, linear; in train mode."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.Linear(36, 5)
    )


def state(network: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in network.state_dict().items()}


def test_value_frozen_restores_mixed_modes_also_after_an_error(network):
    network[1].eval()
    network[4].bias.requires_grad_(False)
    with pytest.raises(KeyError), freeze(network):
        assert not network.training and not network[4].weight.requires_grad
        raise KeyError
    assert network.training and not network[1].training
    assert network[4].weight.requires_grad and not network[4].bias.requires_grad


def test_value_every_part_is_frozen(network):
    with freeze(network) as frozen:
        assert frozen is network
        assert not any(module.training for module in network.modules())
        assert not any(parameter.requires_grad for parameter in network.parameters())
    assert all(module.training for module in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_gradient_reaches_the_images_alone(network):
    x = torch.rand(2, 3, 5, 5, requires_grad=True)
    with freeze(network):
        network(x).sum().backward()
    assert x.grad is not None and all(parameter.grad is None for parameter in network.parameters())


def test_value_a_look_sees_eval_mode_and_leaves_no_trace(network):
    x, before = torch.rand(2, 3, 5, 5), state(network)
    seen = run_frozen(network, lambda frozen: frozen(x))
    assert not seen.requires_grad and network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    torch.testing.assert_close(seen, network.eval()(x).detach())


def test_gradient_a_look_makes_no_graph_to_the_images(network):
    x = torch.rand(2, 3, 5, 5, requires_grad=True)
    assert not run_frozen(network, lambda frozen: frozen(x)).requires_grad
    with pytest.raises(KeyError):
        run_frozen(network, lambda frozen: {}["nothing"])
    assert network.training and torch.is_grad_enabled()
