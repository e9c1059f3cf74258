"""Stages: which weights belong together, and what stands still when the first ones are frozen."""

import pytest
import torch
from torch import nn

from samix.nn.encoder import momentum_copy, momentum_update
from samix.nn.split_norm import SplitBatchNorm, split_norms
from samix.nn.stages import freeze_stages, stages_of
from samix.nn.zoo import Network, build_encoder

FIRST = {
    "small-resnet": (5, "conv1.weight", "layer1."),
    "lite0": (8, "conv_stem.weight", "blocks.0."),
    "wrn-28-8": (5, "conv1.weight", "layer1."),
    "timm:vit_tiny_patch16_224": (13, "cls_token", "blocks.0."),
    "timm:convnext_atto": (6, "stem.0.weight", "stages.0."),
}
"""Number of stages, a weight of the first, how names of the second begin."""


@pytest.mark.parametrize("name", FIRST)
def test_value_stages_in_the_order_of_the_network(name):
    count, first, second = FIRST[name]
    with torch.device("meta"):
        network = build_encoder(name).network
    stages = stages_of(network)
    assert len(stages) == count and first in stages[0]
    assert all(weight.startswith(second) for weight in stages[1])
    assert sorted(sum(stages, [])) == sorted(weight for weight, _ in network.named_parameters())


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_gradient_frozen_stages_take_none(count):
    network = build_encoder("small-resnet", width=4).network
    freeze_stages(network, count)
    frozen = {name for stage in stages_of(network)[:count] for name in stage}
    assert {name for name, p in network.named_parameters() if not p.requires_grad} == frozen


def test_value_what_is_frozen_stays_in_eval_mode_and_the_rest_does_not():
    encoder = Network(width=4, frozen=2).build(16)
    before = {name: value.clone() for name, value in encoder.network.state_dict().items()}
    for mode in (False, True):
        assert encoder.train(mode) is encoder
    encoder(torch.randn(8, 3, 16, 16)).sum().backward()
    moved = {name for name, value in encoder.network.state_dict().items() if not value.equal(before[name])}
    assert moved and all(name.startswith(("layer2.", "layer3.", "layer4.")) for name in moved)
    assert not encoder.network.layer1.training and encoder.network.layer2.training


def test_value_batch_norm_that_keeps_its_statistics_still_learns():
    encoder = Network(width=4, freeze_norm=True).build(16).train()
    before = {name: value.clone() for name, value in encoder.network.named_buffers()}
    encoder(torch.randn(8, 3, 16, 16)).square().sum().backward()
    assert all(value.equal(before[name]) for name, value in encoder.network.named_buffers())
    norms = [module for module in encoder.network.modules() if isinstance(module, nn.BatchNorm2d)]
    assert all(norm.weight.grad is not None for norm in norms)
    assert encoder.network.bn1.bias.grad.abs().sum() > 0


def test_value_split_batch_norms_stay_frozen():
    encoder = Network(width=4, frozen=2, freeze_norm=True).build(16)
    learning = [parameter.requires_grad for parameter in encoder.parameters()]
    split_norms(encoder.network, 2)
    assert [parameter.requires_grad for parameter in encoder.parameters()] == learning
    norms = [module for module in encoder.network.modules() if isinstance(module, SplitBatchNorm)]
    assert norms and not any(norm.training for norm in norms)


def test_value_by_default_everything_is_in_training_mode():
    encoder = Network(width=4).build(16)
    assert all(module.training for module in encoder.train().modules())
    assert all(parameter.requires_grad for parameter in encoder.parameters())


def test_value_a_momentum_copy_holds_still_what_its_source_does():
    encoder = Network(width=4, frozen=3, freeze_norm=True).build(16)
    copy = momentum_copy(encoder).train()
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter))
    momentum_update(copy, encoder, 0.3)
    copy(torch.randn(8, 3, 16, 16))
    mine, theirs = encoder.network.state_dict(), copy.network.state_dict()
    frozen = {name for stage in stages_of(encoder.network)[:3] for name in stage}
    for name, value in mine.items():
        learned = name in dict(encoder.network.named_parameters()) and name not in frozen
        assert value.equal(theirs[name]) is not learned, name


def test_error_more_stages_than_there_are():
    with pytest.raises(ValueError, match=r"encoder.frozen is 6, but the network has 5 stages"):
        Network(width=4, frozen=6).build(16)
    with pytest.raises(ValueError, match=r"encoder.frozen must not be negative, got -1"):
        Network(frozen=-1)
