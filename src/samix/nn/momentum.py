"""Momentum copies: networks that follow other networks slowly and never see a gradient."""

import copy
from typing import TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


def momentum_copy(network: Network) -> Network:
    """A copy of a network that takes no gradient."""
    return copy.deepcopy(network).requires_grad_(False)


@torch.no_grad()
def momentum_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    """theta_k <- m theta_k + (1 - m) theta_q over all parameters, SAMix Eq. (14).

    Buffers stay the target's own: its batch-norm statistics come from its own forward passes.
    """
    torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), 1 - momentum)
