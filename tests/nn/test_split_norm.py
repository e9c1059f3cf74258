"""Split batch norm: each group of the batch is normalised on its own, and nothing else changes."""

import copy

import pytest
import torch
from torch import nn

from samix.nn.split_norm import SplitBatchNorm, split_norms
from samix.nn.zoo import build_encoder


def lively_norm(channels: int = 3) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.normal_(norm.bias)
    norm(5 * torch.randn(8, channels, 4, 4) + 2)  # statistics of its own
    return norm


@pytest.mark.parametrize(
    ("batch", "groups", "sizes"),
    [(8, 2, [4, 4]), (8, 4, [2] * 4), (7, 3, [3, 2, 2]), (9, 2, [5, 4]), (5, 8, [3, 2]), (6, 8, [2] * 3)],
)
def test_value_groups_equal_separate_norms(batch, groups, sizes):
    norm = lively_norm()
    split, x = SplitBatchNorm(norm, groups), torch.randn(batch, 3, 1, 1)
    expected = torch.cat([norm(part) for part in x.split(sizes)])  # one after the other, as running means go
    torch.testing.assert_close(split(x), expected)
    for name, value in norm.state_dict().items():
        torch.testing.assert_close(split.state_dict()[name], value, msg=name)


@pytest.mark.parametrize("batch", [2, 3])
def test_value_a_batch_that_is_too_small_to_split_stays_whole(batch):
    norm, x = lively_norm(), torch.randn(batch, 3, 2, 2)
    torch.testing.assert_close(SplitBatchNorm(norm, 4)(x), norm(x))


def test_gradient_groups_equal_separate_norms():
    norm = lively_norm()
    split, x, weight = SplitBatchNorm(norm, 2), torch.randn(6, 3, 2, 2), torch.randn(6, 3, 2, 2)
    (split(x) * weight).sum().backward()
    (torch.cat([norm(x[:3]), norm(x[3:])]) * weight).sum().backward()
    torch.testing.assert_close(split.weight.grad, norm.weight.grad)
    torch.testing.assert_close(split.bias.grad, norm.bias.grad)


def test_value_eval_mode_equals_the_plain_norm():
    norm = lively_norm()
    split, x = SplitBatchNorm(norm, 2).eval(), torch.randn(6, 3, 2, 2)
    assert torch.equal(split(x), norm.eval()(x))


def test_invariant_a_split_network_keeps_names_and_weights():
    plain = build_encoder("small-resnet", width=4)
    split = copy.deepcopy(plain)
    split_norms(split, 4)
    norms = [module for module in split.modules() if isinstance(module, nn.BatchNorm2d)]
    assert norms and all(type(module) is SplitBatchNorm and module.groups == 4 for module in norms)
    assert list(split.state_dict()) == list(plain.state_dict())
    assert all(torch.equal(value, split.state_dict()[name]) for name, value in plain.state_dict().items())
    assert [name for name, _ in split.named_parameters()] == [name for name, _ in plain.named_parameters()]
    x = torch.randn(8, 3, 16, 16)
    assert not torch.allclose(split(x), plain(x), atol=1e-3)
    split.load_state_dict(plain.state_dict())
    assert torch.equal(split.eval()(x), plain.eval()(x))


def test_invariant_one_group_changes_nothing():
    network = build_encoder("small-resnet", width=4)
    split_norms(network, 1)
    assert not any(isinstance(module, SplitBatchNorm) for module in network.modules())


def test_invariant_splitting_twice_splits_once():
    network = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm2d(3)))
    split_norms(network, 2)
    first = network[1][0]
    split_norms(network, 2)
    assert network[1][0] is first
