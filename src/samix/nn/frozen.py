"""Networks held still for a look: eval mode, no gradients, and afterwards everything as it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

AnyNetwork = TypeVar("AnyNetwork", bound=nn.Module)


@contextmanager
def freeze(network: nn.Module) -> Iterator[nn.Module]:
    """Holds the network in eval mode without weight gradients; afterwards everything is as it was."""
    modes = [(module, module.training) for module in network.modules()]
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    network.eval()
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield network
    finally:
        for module, training in modes:
            module.training = training
        for parameter in learning:
            parameter.requires_grad_(True)


@torch.no_grad()
def run_frozen(network: AnyNetwork, look: Callable[[AnyNetwork], Tensor]) -> Tensor:
    """Returns what `look` makes of the frozen network, without a graph."""
    with freeze(network):
        return look(network)
