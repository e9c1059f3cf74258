"""Catch-Up Mix: which filter shows whom, filter by filter."""

import math

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.mixups import CatchUpMix
from samix.mixups.catchupmix import count_filters, filter_influence
from samix.mixups.cutmix import cutmix_mask


def loop_maps(maps: Tensor, index: list[int], lam: list[float]) -> tuple[Tensor, list[float]]:
    """Sorts the filters of every pair by hand."""
    mixed, weights = maps.clone(), []
    for i, j in enumerate(index):
        shares = []
        for image in (i, j):
            length = [math.sqrt(sum(float(v) ** 2 for v in plane.flatten())) for plane in maps[image]]
            shares.append([one / sum(length) for one in length])
        order = sorted(range(len(shares[0])), key=lambda c: shares[0][c] - shares[1][c])
        kept = math.floor(lam[i % len(lam)] * len(order) + 1e-6)
        for c in order[kept:]:
            mixed[i, c] = maps[j, c]
        weights.append(kept / len(order))
    return mixed, weights


@pytest.mark.parametrize("lam", [[0.4], [0.0, 0.19, 0.3, 0.7, 1.0]])
def test_value_against_a_loop(lam):
    maps, index = torch.randn(5, 10, 3, 4), [2, 0, 4, 1, 3]
    found = CatchUpMix().mix_maps(maps, Pairing(torch.tensor(lam), torch.tensor(index)))
    expected, weights = loop_maps(maps, index, lam)
    assert torch.equal(found.maps, expected)
    assert found.lam.expand(5).tolist() == pytest.approx(weights)


def test_value_a_whole_number_of_filters_survives_float32():
    lam = torch.tensor([k / 10 for k in range(11)])
    assert count_filters(lam, 10).tolist() == list(range(11))
    assert count_filters(torch.tensor([0.39]), 10).tolist() == [3]


def test_value_the_strongest_filter_goes_first():
    """x_i leans on filter 0, so its map is the first to be replaced and the last of x_j to be shown."""
    maps = torch.ones(2, 4, 2, 2)
    maps[0, 0] = 50.0
    mixed = CatchUpMix().mix_maps(maps, Pairing(torch.tensor([0.75]), torch.tensor([1, 0]))).maps
    assert (mixed[0] == 1).all() and (mixed[1, 0] == 1).all()


def test_value_influence_is_relative():
    maps = torch.rand(3, 6, 4, 4)
    torch.testing.assert_close(filter_influence(maps), filter_influence(7 * maps))
    torch.testing.assert_close(filter_influence(torch.zeros(1, 4, 2, 2)), torch.full((1, 4), 0.25))


def test_value_inside_a_network_every_layer_is_drawn():
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4))
    x, index = torch.rand(4, 3, 8, 8), torch.tensor([1, 2, 3, 0])
    policy, seen = CatchUpMix(layers=("input", "0")), set()
    for seed in range(12):
        draw = torch.Generator().manual_seed(seed)
        outputs, mixed = policy.run(network, x, Pairing(torch.tensor([0.52]), index), None, draw)
        if torch.equal(mixed.x, x):
            maps = policy.mix_maps(network[0](x), Pairing(torch.tensor([0.52]), index))
            torch.testing.assert_close(outputs, network[1:](maps.maps))
            assert mixed.pairing.lam.tolist() == [0.5]
            seen.add("0")
        else:
            again = torch.Generator().manual_seed(seed)
            policy.draw_layer(again)
            assert torch.equal(mixed.mask, cutmix_mask((8, 8), torch.tensor([0.52]), again))
            seen.add("input")
    assert seen == {"input", "0"}


def test_gradient_reaches_the_shown_maps_only():
    maps = torch.randn(2, 4, 3, 3, requires_grad=True)
    found = CatchUpMix().mix_maps(maps, Pairing(torch.tensor([0.5]), torch.tensor([1, 0])))
    (grad,) = torch.autograd.grad(found.maps[0].sum(), maps)
    assert (grad.sum(dim=0) == 1).all() and set(grad.unique().tolist()) == {0.0, 1.0}
    assert not found.lam.requires_grad


def test_error_a_layer_without_maps():
    with pytest.raises(ValueError, match=r"CatchUpMix needs a layer with a map \[B, C, h, w\]"):
        CatchUpMix().mix_maps(torch.rand(2, 7, 5), Pairing(torch.tensor([0.5]), torch.tensor([1, 0])))
