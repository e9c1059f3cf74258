"""What a map needs of its network: with everything else spoilt it stays the same."""

import pytest
import torch

from samix.nn.reach import names_in_reach
from samix.nn.zoo import Network

SIZES = {"small-resnet": 16, "small-vit": 16, "resnet18-cifar": 16, "resnet18": 32, "lite0": 32, "swin-t": 32}


@pytest.mark.parametrize("name", SIZES)
def test_value_only_what_is_in_reach_matters(name):
    size = SIZES[name]
    encoder = Network(name=name, width=4).build(size)
    reach, state = names_in_reach(encoder, size), encoder.network.state_dict()
    assert reach < set(state) and encoder.training
    encoder.eval()
    x = torch.rand(2, 3, size, size)
    with torch.no_grad():
        before = encoder.maps(x)
        for key in set(state) - reach:
            state[key].fill_(float("nan") if state[key].is_floating_point() else 0)
        assert torch.equal(encoder.maps(x), before)
        for key in sorted(reach):  # and each of them does matter, but for counters and tables of positions
            if state[key].is_floating_point():
                kept = state[key].clone()
                state[key].fill_(float("nan"))
                assert not torch.equal(encoder.maps(x), before), key
                state[key].copy_(kept)


def test_value_of_a_small_network_by_hand():
    names = names_in_reach(Network(width=4).build(16), 16)
    assert {name.partition(".")[0] for name in names} == {"conv1", "bn1", "layer1", "layer2", "layer3"}
    assert "layer3.0.downsample.0.weight" in names and "bn1.running_var" in names
