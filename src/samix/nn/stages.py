"""Stages of a network: what is frozen first and learns slowest when a trained network is trained further."""

from collections.abc import Callable
from typing import Any

from torch import nn


def stages_of(network: nn.Module) -> list[list[str]]:
    """Names of the parameters of every stage, the pictures' end first.

    Networks of timm say what belongs together: the stem, then each stage of a convolutional network or each
    block of a transformer, what follows the last one along with it. Other networks: their direct children
    that have weights.
    """
    matcher: Callable[..., Any] | None = getattr(network, "group_matcher", None)
    if matcher is not None:
        from timm.models import group_parameters  # late, see from_timm

        return [names for _, names in sorted(group_parameters(network, matcher(coarse=True)).items())]
    stages: dict[str, list[str]] = {}
    for name, _ in network.named_parameters():
        stages.setdefault(name.partition(".")[0], []).append(name)
    return list(stages.values())


def freeze_stages(network: nn.Module, count: int) -> tuple[str, ...]:
    """Takes the gradients of the first `count` stages away; returns the modules that must stay in eval mode.

    These are all modules whose weights are frozen, so that batch norm keeps its statistics and nothing is
    dropped in them.
    """
    stages = stages_of(network)
    if count > len(stages):
        raise ValueError(f"encoder.frozen is {count}, but the network has {len(stages)} stages.")
    chosen = {name for stage in stages[:count] for name in stage}
    for name, parameter in network.named_parameters():
        if name in chosen:
            parameter.requires_grad_(False)
    still = []
    for name, module in network.named_modules():
        own = [f"{name}.{inner}" if name else inner for inner, _ in module.named_parameters()]
        if own and chosen.issuperset(own):
            still.append(name)
    return tuple(still)
