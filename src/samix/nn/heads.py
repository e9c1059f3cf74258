"""Projection and prediction heads of self-supervised methods, all one small perceptron."""

from collections.abc import Sequence
from typing import Literal

from torch import nn

LastNorm = Literal["none", "plain", "scale"]
"""What follows the last layer: nothing, batch norm without affine part, or batch norm without shift."""


def mlp(
    widths: Sequence[int],
    *,
    bias: tuple[bool, bool] = (True, True),
    norm: bool = False,
    last: LastNorm = "none",
) -> nn.Sequential:
    """Linear layers of these widths with ReLU between them.

    `bias` is for the hidden layers and for the last one; `norm` puts batch norm before every ReLU.
    """
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False), start=1):
        is_last = number == len(widths) - 1
        layers.append(nn.Linear(inputs, outputs, bias=bias[is_last]))
        if not is_last:
            layers += [nn.BatchNorm1d(outputs), nn.ReLU(inplace=True)] if norm else [nn.ReLU(inplace=True)]
    if last != "none":
        layers.append(last_norm(widths[-1], last))
    return nn.Sequential(*layers)


def last_norm(width: int, kind: LastNorm) -> nn.BatchNorm1d:
    """Batch norm at the end of a head: without affine part, or with a scale but a shift fixed at 0."""
    layer = nn.BatchNorm1d(width, affine=kind != "plain")
    if kind == "scale":
        layer.bias.requires_grad_(False)
    return layer
