"""Batch norm with fixed statistics is a scale and a shift, so a convolution before it can do its work.

For networks that are frozen for good: a pass then reads and writes every map once less.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

TOLERANCE = 1e-3
"""Relative to the largest output: far above rounding, far below what a wrong fold does."""


@torch.no_grad()
def fold_norms(network: nn.Module, example: Tensor) -> nn.Module:
    """A copy of a network in eval mode whose batch norms are folded into the convolutions before them.

    Modules tell their parts, not the order in which they run, so the copy is tried on `example`: where it
    answers otherwise, the network itself is returned.

    >>> network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    >>> fold_norms(network, torch.rand(1, 3, 8, 8))[1]
    Identity()
    """
    folded = deepcopy(network)
    fold_children(folded)
    expected, found = network(example), folded(example)
    close = (found - expected).abs().max() <= TOLERANCE * expected.abs().max()
    return folded if close else network


def fold_children(module: nn.Module) -> None:
    """Folds every batch norm that directly follows a convolution of as many channels among a module's parts.

    timm's batch norms carry the activation behind them, which stays in their place.
    """
    earlier: tuple[str, nn.Module] = ("", module)
    for name, part in list(module.named_children()):
        place, before = earlier
        if isinstance(before, nn.Conv2d) and isinstance(part, nn.BatchNorm2d) and fits(before, part):
            setattr(module, place, fuse_conv_bn_eval(before, part))
            setattr(module, name, getattr(part, "act", nn.Identity()))
        else:
            fold_children(part)
        earlier = (name, part)


def fits(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> bool:
    """Whether the norm may be what follows the convolution, and has statistics to fold."""
    return convolution.out_channels == norm.num_features and norm.running_mean is not None
