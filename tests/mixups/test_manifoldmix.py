"""ManifoldMix: Mixup of whatever a layer gives."""

import pytest
import torch
from torch import nn

from samix.core.pairing import Pairing
from samix.mixups.manifoldmix import ManifoldMix, interpolate
from samix.nn.encoder import read_layer
from samix.nn.zoo import build_encoder

INDEX = torch.tensor([2, 0, 1])


@pytest.fixture(params=[[0.3], [0.0, 0.25, 1.0]], ids=["one lam", "lam per sample"])
def lam(request) -> torch.Tensor:
    return torch.tensor(request.param)


@pytest.mark.parametrize("shape", [(3, 2, 4, 3), (3, 5, 4), (3, 6)], ids=["map", "tokens", "vectors"])
def test_value_against_a_loop(lam, shape):
    maps = torch.randn(shape)
    mixed, weight = ManifoldMix().mix_maps(maps, Pairing(lam, INDEX))
    rows, out = maps.flatten(1), mixed.flatten(1)
    for i in range(3):
        first = float(lam[i % len(lam)])
        for k in range(rows.shape[1]):
            expected = first * float(rows[i, k]) + (1 - first) * float(rows[INDEX[i], k])
            assert float(out[i, k]) == pytest.approx(expected, abs=1e-6)
    assert torch.equal(weight, lam)


def test_value_one_pass_equals_mixing_between_two_halves(lam):
    """The layers behind the drawn one see the mixture; those before it see clean images."""
    halves = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5)))
    x = torch.rand(3, 3, 8, 8)
    outputs, mixed = ManifoldMix(layers=("0",)).run(halves, x, Pairing(lam, INDEX))
    maps = halves[0](x)
    torch.testing.assert_close(outputs, halves[1](interpolate(maps, maps[INDEX], lam)))
    assert torch.equal(mixed.pairing.lam, lam)


def test_value_input_is_mixup(lam):
    network, x = build_encoder("small-resnet", width=4).eval(), torch.rand(3, 3, 8, 12)
    outputs, mixed = ManifoldMix(layers=("input",)).run(network, x, Pairing(lam, INDEX))
    weight = lam.view(-1, 1, 1, 1)
    expected = weight * x + (1 - weight) * x[INDEX]
    torch.testing.assert_close(mixed.x, expected)
    torch.testing.assert_close(outputs, network(expected))
    torch.testing.assert_close(mixed.pairing.lam, lam)


def test_value_the_default_layers_are_those_of_the_paper():
    """Stage 1 keeps the resolution of the stem, stage 2 halves it."""
    network, policy = build_encoder("small-resnet", width=4), ManifoldMix()
    assert policy.layers == ("input", "layer1", "layer2") and policy.alpha == 2.0
    shapes = [list(read_layer(network, layer, torch.rand(2, 3, 16, 16)).shape) for layer in policy.layers[1:]]
    assert shapes == [[2, 4, 16, 16], [2, 8, 8, 8]]


def test_gradient_reaches_both_by_their_weights(lam):
    maps = torch.randn(3, 2, 4, 4, requires_grad=True)
    (grad,) = torch.autograd.grad(ManifoldMix().mix_maps(maps, Pairing(lam, INDEX)).maps.sum(), maps)
    weights = lam.expand(3)
    for i in range(3):
        expected = float(weights[i]) + float(1 - weights[i == INDEX])
        torch.testing.assert_close(grad[i], torch.full((2, 4, 4), expected))
