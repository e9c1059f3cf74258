"""Tiny self-supervised methods and two views of random pictures."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from samix.methods.ssl.base import SelfSupervised
from samix.methods.ssl.byol import BYOLConfig
from samix.methods.ssl.moco import MoCoV1, MoCoV2
from samix.methods.ssl.mocov3 import MoCoV3Config
from samix.methods.ssl.simclr import SimCLRConfig
from samix.methods.ssl.simsiam import SimSiamConfig
from samix.methods.ssl.swav import SwAVConfig
from samix.nn.encoder import Encoder

CONFIGS = {
    "moco-v1": MoCoV1(queue=16, dim=8),
    "moco-v2": MoCoV2(queue=16, dim=8, hidden=16),
    "moco-v3": MoCoV3Config(dim=8, hidden=16, tau=0.5),
    "simclr": SimCLRConfig(dim=8, hidden=16),
    "byol": BYOLConfig(dim=8, hidden=16),
    "simsiam": SimSiamConfig(dim=8, hidden=4),
    "swav": SwAVConfig(dim=8, hidden=16, prototypes=6, freeze=0.0),
}
"""Every embedding is 8 wide."""


def tiny_encoder() -> Encoder:
    """Two layers with batch norm; the Mixer reads the first one's map, 8 channels of 8 x 8 for 16 px."""
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    return Encoder(network, "2")


def build_selfsup(name: str, encoder: Encoder | None = None, **changes: Any) -> SelfSupervised:
    """`encoder` stands in for the tiny one; `changes` are fields of the method's config."""
    encoder = encoder or tiny_encoder()
    method = replace(CONFIGS[name], **changes).build(encoder, encoder.probe(16)[1])
    if method.momentum is not None:
        for parameter in method.momentum.parameters():  # so that it shows which branch gave what
            parameter.add_(0.05 * torch.randn_like(parameter))
    return method


@pytest.fixture
def selfsup() -> Callable[..., SelfSupervised]:
    """Builds a method by name: `selfsup("moco-v2", queue=7)`."""
    return build_selfsup


@pytest.fixture(params=CONFIGS)
def method_name(request) -> str:
    """The name of every method in turn."""
    return request.param


@pytest.fixture
def two_views() -> Callable[..., tuple[Tensor, Tensor]]:
    """(all first views and then all second views, index) of so many pictures in about [0, 1]."""

    def make(count: int = 4, seed: int = 1) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        pictures = torch.rand(count, 3, 16, 16, generator=generator)
        noise = torch.rand(2 * count, 3, 16, 16, generator=generator)
        return 0.7 * pictures.repeat(2, 1, 1, 1) + 0.3 * noise, torch.arange(count)

    return make


@pytest.fixture
def gradients() -> Callable[[Tensor, nn.Module], dict[str, Tensor | None]]:
    """The gradient of a loss by parameter name, None where it does not reach; frozen ones are left out."""

    def take(loss: Tensor, module: nn.Module) -> dict[str, Tensor | None]:
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        found = torch.autograd.grad(loss, list(named.values()), retain_graph=True, allow_unused=True)
        return dict(zip(named, found, strict=True))

    return take
