"""Reading and changing layers by name, without touching the network."""

import pytest
import torch
from torch import nn

from samix.nn.encoder import changing_output, find_layer, read_layer


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


def test_value_find_layer_also_below_wrappers():
    network = Wrapped()
    assert find_layer(network, "module.2") is network.module[2]
    assert find_layer(network, "2") is network.module[2]
    assert find_layer(nn.Sequential(network), "module") is network.module


def test_value_the_shallowest_layer_of_that_name_is_found():
    inner, outer = nn.Linear(2, 2), nn.Linear(2, 2)
    network = nn.ModuleDict(
        {"a": nn.ModuleDict({"b": nn.ModuleDict({"head": inner})}), "c": nn.ModuleDict({"head": outer})}
    )
    assert find_layer(network, "head") is outer


def test_error_an_unknown_layer_gets_a_suggestion():
    with pytest.raises(ValueError, match=r"no layer 'modul'.*module"):
        find_layer(Wrapped(), "modul")


def test_value_read_layer_stops_behind_the_layer():
    network, x = Wrapped(), torch.randn(3, 4)
    network.module[2].register_forward_hook(lambda *_: setattr(network, "calls", network.calls + 1))
    torch.testing.assert_close(read_layer(network, "module.1", x), network.module[:2](x))
    assert network.calls == 0


def test_value_changing_output_lasts_as_long_as_the_block():
    network, x = Wrapped(), torch.randn(3, 4)
    before = network(x)
    with changing_output(network, "module.1", lambda hidden: hidden * 0):
        torch.testing.assert_close(network(x), network.module[2].bias.expand(3, 2))
    assert torch.equal(network(x), before)


def test_value_hooks_go_even_when_the_forward_fails():
    network = Wrapped()
    with pytest.raises(RuntimeError), changing_output(network, "module.0", lambda hidden: hidden[:, :1]):
        network(torch.randn(3, 4))
    with pytest.raises(RuntimeError):
        read_layer(network, "module.2", torch.randn(3, 7))
    assert not any(module._forward_hooks for module in network.modules())
