"""MoCo v3's transformer (arXiv 2104.02057): fixed positions and a frozen, random patch projection."""

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
    network.pos_embed.requires_grad_(False)
    network.patch_embed.requires_grad_(False)
    return network


def sine_cosine_positions(height: int, width: int, channels: int) -> Tensor:
    """[height * width, channels]: a quarter each of sin and cos of the column, then of the row."""
    if channels % 4:
        raise ValueError(f"positions in two dimensions need channels divisible by 4, got {channels}.")
    frequency = 10000.0 ** -(torch.arange(channels // 4) / (channels // 4))
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    angles = [place.flatten()[:, None] * frequency for place in (columns, rows)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], dim=1)
