"""From networks of timm to whole classifiers of timm, where they are still the same."""

import copy

import pytest
import torch
from torch import nn

from samix.nn.encoder import momentum_copy
from samix.nn.from_timm import Built, timm_network
from samix.nn.plain_timm import as_plain_timm, built_by_timm, head_name, whole_weights
from samix.nn.zoo import ENCODERS, Network


def linear(network: nn.Module, size: int) -> nn.Linear:
    return nn.Linear(network.eval()(torch.rand(1, 3, size, size)).shape[1], 5)


def test_value_a_network_remembers_how_it_was_made():
    network = timm_network("resnet18", drop_path_rate=0.1)
    for same in (network, copy.deepcopy(network), momentum_copy(network)):
        assert built_by_timm(same) == Built("resnet18", {"drop_path_rate": 0.1})
    assert built_by_timm(nn.Linear(2, 2)) is None
    assert "built" not in " ".join(network.state_dict())


SLOW = ("swin-t", "resnet101", "resnext101")


@pytest.mark.parametrize("name", [name for name in ENCODERS if name not in SLOW])
def test_value_which_encoders_are_plain_timm(name):
    network = Network(name=name).build(32).network
    found = as_plain_timm(network, linear(network, 32), 32)
    changed = name.endswith("-cifar") or name in ("small-resnet", "wrn-28-8")
    assert (found is None) == changed
    assert found is None or "drop_path_rate" not in found.options


def test_value_a_network_that_computes_otherwise_is_not_timm():
    network = timm_network("resnet18")
    head = linear(network, 32)
    assert as_plain_timm(network, head, 32) == Built("resnet18", {})
    network.maxpool = nn.AvgPool2d(3, 2, 1)  # the same weights, another network
    assert as_plain_timm(network, head, 32) is None


def test_value_two_last_layers_are_not_one():
    network = timm_network("deit_tiny_distilled_patch16_224", img_size=32)
    assert as_plain_timm(network, linear(network, 32), 32) is None


@pytest.mark.parametrize(("name", "place"), [("resnet18", "fc"), ("convnext_atto", "head.fc")])
def test_value_the_head_lies_where_timm_keeps_it(name, place):
    network = timm_network(name)
    head = nn.Linear(3, 5)
    assert head_name(network) == place and head_name(nn.Linear(2, 2)) == "head"
    assert torch.equal(whole_weights(network, head)[f"{place}.weight"], head.weight)
