"""Heads: which layers stand where, and which of them learn."""

import pytest
import torch
from torch import nn

from samix.nn.heads import mlp


def kinds(head: nn.Module) -> list[str]:
    return [type(layer).__name__ for layer in head]


def linear_layers(head: nn.Module) -> list[nn.Linear]:
    return [layer for layer in head if isinstance(layer, nn.Linear)]


@pytest.mark.parametrize(
    ("widths", "norm", "expected"),
    [
        ([5, 3], False, ["Linear"]),
        ([5, 3], True, ["Linear"]),
        ([5, 4, 3], False, ["Linear", "ReLU", "Linear"]),
        ([5, 4, 3], True, ["Linear", "BatchNorm1d", "ReLU", "Linear"]),
        ([5, 4, 4, 3], True, ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d", "ReLU", "Linear"]),
    ],
)
def test_shape_layers(widths, norm, expected):
    head = mlp(widths, norm=norm)
    assert kinds(head) == expected
    assert [(layer.in_features, layer.out_features) for layer in linear_layers(head)] == list(
        zip(widths, widths[1:], strict=False)
    )
    assert head(torch.randn(4, widths[0])).shape == (4, widths[-1])


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_value_biases_of_hidden_and_last_layers(hidden, last):
    head = mlp([5, 4, 4, 3], bias=(hidden, last))
    assert [layer.bias is not None for layer in linear_layers(head)] == [hidden, hidden, last]


def test_value_one_layer_is_the_last():
    assert mlp([5, 3], bias=(False, True))[0].bias is not None


def test_value_two_layers_against_a_loop():
    head, x = mlp([3, 4, 2]), torch.randn(2, 3)
    head.requires_grad_(False)
    for row, found in zip(x, head(x), strict=True):
        hidden = [max(float(w @ row + b), 0.0) for w, b in zip(head[0].weight, head[0].bias, strict=True)]
        expected = head[2].weight @ torch.tensor(hidden) + head[2].bias
        torch.testing.assert_close(found, expected)


def test_value_a_plain_last_norm_has_nothing_to_learn():
    """Every output has mean 0 and deviation 1 over the batch."""
    head = mlp([5, 4, 3], norm=True, last="plain")
    assert kinds(head)[-1] == "BatchNorm1d" and not list(head[-1].parameters())
    output = head(torch.randn(64, 5))
    torch.testing.assert_close(output.mean(dim=0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(output.std(dim=0, correction=0), torch.ones(3), atol=1e-2, rtol=0)


def test_gradient_a_scaled_last_norm_learns_its_scale_but_no_shift():
    head = mlp([5, 4, 3], norm=True, last="scale")
    (head(torch.randn(8, 5)) ** 3).sum().backward()
    assert head[-1].weight.grad.abs().min() > 0 and head[-1].bias.grad is None
    assert not head[-1].bias.requires_grad and torch.equal(head[-1].bias, torch.zeros(3))
    assert all(p.grad is not None for p in head.parameters() if p.requires_grad)
