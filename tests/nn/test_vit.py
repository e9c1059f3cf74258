"""MoCo v3's transformer: what is fixed, and where positions are."""

import math

import pytest
import torch

from samix.nn.vit import moco_vit, sine_cosine_positions


def test_value_positions_against_a_loop():
    found = sine_cosine_positions(3, 2, 8)
    for row in range(3):
        for column in range(2):
            for channel in range(2):
                frequency = 10000 ** -(channel / 2)
                values = found[2 * row + column]
                assert float(values[channel]) == pytest.approx(math.sin(column * frequency), abs=1e-6)
                assert float(values[2 + channel]) == pytest.approx(math.cos(column * frequency), abs=1e-6)
                assert float(values[4 + channel]) == pytest.approx(math.sin(row * frequency), abs=1e-6)
                assert float(values[6 + channel]) == pytest.approx(math.cos(row * frequency), abs=1e-6)


def test_value_patches_and_positions_are_not_learned():
    network = moco_vit()
    assert network.blocks[0].attn.num_heads == 12
    fixed = {name for name, p in network.named_parameters() if not p.requires_grad}
    assert fixed == {"pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias"}
    assert torch.equal(network.pos_embed[0, 0], torch.zeros(384))
    assert torch.equal(network.pos_embed[0, 1:], sine_cosine_positions(14, 14, 384))


def test_error_channels():
    with pytest.raises(ValueError, match="divisible by 4, got 6"):
        sine_cosine_positions(2, 2, 6)


def test_value_first_weights_are_those_of_moco_v3():
    """Bounds sqrt(6 / (inputs + outputs)); q, k and v are three layers, patches one of 3 x 16 x 16 inputs."""
    network = moco_vit()
    block, patches = network.blocks[3], network.patch_embed.proj
    bounds = {
        patches: (6 / (768 + 384)) ** 0.5,  # .072
        block.attn.qkv: (6 / (384 + 384)) ** 0.5,
        block.attn.proj: (6 / (384 + 384)) ** 0.5,
        block.mlp.fc1: (6 / (384 + 1536)) ** 0.5,
        block.mlp.fc2: (6 / (384 + 1536)) ** 0.5,
    }
    for layer, bound in bounds.items():
        assert 0.99 * bound < float(layer.weight.abs().max()) <= bound
        assert float(layer.weight.std()) == pytest.approx(bound / 3**0.5, rel=0.02)
        assert not layer.bias.any()
    assert float(block.attn.qkv.weight.std()) == pytest.approx(0.051, abs=5e-4)
    assert 0 < float(network.cls_token.abs().max()) < 1e-5
