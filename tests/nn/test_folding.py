"""Batch norms folded into the convolutions before them."""

import pytest
import torch
from torch import nn

from samix.nn.encoder import read_layer
from samix.nn.folding import fold_norms
from samix.nn.zoo import build_encoder

X = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)) - 0.5


def norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def stir(network: nn.Module) -> nn.Module:
    """A network in eval mode whose batch norms do something."""
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.weight, module.bias, module.running_mean, module.running_var):
                values.data.uniform_(0.5, 1.5, generator=generator)
    return network.eval()


@pytest.mark.parametrize(
    "name", ["small-resnet", "resnet18-cifar", "wrn-28-8", "lite0", "timm:resnetv2_50", "small-vit"]
)
def test_value_the_folded_network_answers_alike(name):
    torch.manual_seed(0)
    encoder = build_encoder(name, **({"size": 64} if name == "small-vit" else {}))
    network = stir(encoder.network)
    before = norms(network)
    with torch.no_grad():
        expected, maps = network(X), read_layer(network, encoder.layer, X)
        folded = fold_norms(network, X[:1])
        scale = expected.abs().max()
        torch.testing.assert_close(folded(X) / scale, expected / scale, rtol=1e-4, atol=1e-5)
        found = read_layer(folded, encoder.layer, X)
    torch.testing.assert_close(found / maps.abs().max(), maps / maps.abs().max(), rtol=1e-4, atol=1e-5)
    assert norms(network) == before  # the network itself is as it was
    if name in ("small-resnet", "resnet18-cifar", "lite0"):
        assert norms(folded) == 0


class Crossed(nn.Module):
    """Parts that stand side by side and run in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(self.norm(self.second(x).relu()))


def test_value_a_network_that_runs_in_another_order_stays_as_it_is():
    torch.manual_seed(0)
    network = stir(Crossed())
    assert fold_norms(network, X) is network


def test_value_a_norm_without_statistics_stays():
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, track_running_stats=False)).eval()
    assert norms(fold_norms(network, X)) == 1
