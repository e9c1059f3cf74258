"""MoCo v3's transformer (arXiv 2104.02057): fixed positions, a frozen, random patch projection, and its first
weights."""

from typing import Any

import torch
from torch import Tensor, nn

from samix.nn.from_timm import timm_network


def moco_vit(name: str = "vit_small_patch16_224", heads: int = 12, size: int = 224) -> nn.Module:
    """timm's ViT-S with 12 heads, 2-d sine-cosine positions and patches that are not learned.

    A frozen patch projection keeps self-supervised training stable.
    """
    network: Any = timm_network(name, num_heads=heads, img_size=size)
    grid, width = network.patch_embed.grid_size, network.embed_dim
    positions = sine_cosine_positions(grid[0], grid[1], width)
    with torch.no_grad():
        network.pos_embed.copy_(torch.cat([torch.zeros(1, width), positions])[None])
    init_weights(network)
    network.pos_embed.requires_grad_(False)
    network.patch_embed.requires_grad_(False)
    return network


@torch.no_grad()
def init_weights(network: nn.Module) -> None:
    """First weights as in MoCo v3's own code: U(-a, a) with a = sqrt(6 / (inputs + outputs)), biases 0.

    Queries, keys and values count as three layers, and the patches as a linear layer of their pixels. timm's
    are normal with a deviation of .02 everywhere, and half as wide for patches, which stay as they are here.
    """
    for name, layer in network.named_modules():
        if isinstance(layer, nn.Linear):
            outputs, inputs = layer.weight.shape
            bound = (6 / (inputs + outputs // (3 if name.endswith("qkv") else 1))) ** 0.5
        elif isinstance(layer, nn.Conv2d):
            bound = (6 / (layer.weight[0].numel() + len(layer.weight))) ** 0.5
        else:
            continue
        nn.init.uniform_(layer.weight, -bound, bound)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    nn.init.normal_(network.cls_token, std=1e-6)  # type: ignore[arg-type]


def sine_cosine_positions(height: int, width: int, channels: int) -> Tensor:
    """[height * width, channels]: a quarter each of sin and cos of the column, then of the row."""
    if channels % 4:
        raise ValueError(f"positions in two dimensions need channels divisible by 4, got {channels}.")
    frequency = 10000.0 ** -(torch.arange(channels // 4) / (channels // 4))
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    angles = [place.flatten()[:, None] * frequency for place in (columns, rows)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], dim=1)
