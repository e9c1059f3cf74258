"""Attention of the class token: against the layers' own weights, for every kind of token and layer."""

import math

import samix  # noqa: F401  (prepares torchvision, which timm imports)

# isort: split
import pytest
import timm
import torch
from torch import Tensor, nn

from samix.nn.attention import (
    class_attention,
    class_row,
    grid_of,
    last_attention,
    prefix_tokens,
    watching_attention,
    weights_of,
)
from samix.nn.windows import Windows, join_windows

SMALL = {
    "img_size": 32,
    "patch_size": 8,
    "depth": 2,
    "embed_dim": 24,
    "num_heads": 3,
    "num_classes": 5,
}

# kind: (timm name, options, tokens before the patches)
KINDS = {
    "vit": ("vit_tiny_patch16_224", {}, 1),
    "deit": ("deit_tiny_patch16_224", {}, 1),
    "distilled": ("deit_tiny_distilled_patch16_224", {}, 2),
    "registers": ("vit_tiny_patch16_224", {"reg_tokens": 4}, 5),
    "qk norm": ("vit_tiny_patch16_224", {"qk_norm": True}, 1),
    "average pool": ("vit_tiny_patch16_224", {"global_pool": "avg"}, 1),
    "position bias": ("beit_base_patch16_224", {}, 1),
    "rotary": ("eva02_tiny_patch14_224", {}, 1),
    "class attention": ("cait_xxs24_224", {"depth_token_only": 1}, 1),
}


def build(name: str, **options) -> nn.Module:
    network = timm.create_model(name, **(SMALL | options)).eval()
    for parameter in network.parameters():  # timm starts with weights so small that every map is flat
        parameter.data += 0.2 * torch.randn_like(parameter)
    return network


def unfused_weights(network: nn.Module, x: Tensor) -> Tensor:
    """What the last attention layer hands to its dropout in a pass of the whole network without fusing."""
    layer, seen = last_attention(network), []
    layer.fused_attn = False
    handle = layer.attn_drop.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    network(x)
    handle.remove()
    (weights,) = seen
    return weights.detach()


def loop_map(weights: Tensor, prefix: int, side: int) -> Tensor:
    """Mean over heads of row 0, without the prefix, divided by its sum."""
    batch, heads = weights.shape[:2]
    maps = torch.zeros(batch, side, side)
    for b in range(batch):
        for row in range(side):
            for column in range(side):
                values = [float(weights[b, h, 0, prefix + row * side + column]) for h in range(heads)]
                maps[b, row, column] = sum(values) / heads
        maps[b] /= maps[b].sum()
    return maps


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_value_against_the_layers_own_weights(kind, fused):
    name, options, prefix = KINDS[kind]
    network, x = build(name, **options), torch.randn(3, 3, 32, 32)
    for layer in network.modules():
        if hasattr(layer, "fused_attn"):
            layer.fused_attn = fused
    attention = class_attention(network, x)
    assert prefix_tokens(network) == prefix
    torch.testing.assert_close(attention, loop_map(unfused_weights(network, x), prefix, 4))
    assert attention.std() > 0.01, "a flat map would agree with anything"


def test_value_against_queries_and_keys_by_hand():
    network, x = build("vit_tiny_patch16_224"), torch.randn(2, 3, 32, 32)
    layer, seen = network.blocks[-1].attn, []
    handle = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    attention = class_attention(network, x)
    handle.remove()
    heads, width = 3, 8
    weights = torch.zeros(2, heads, 1, 17)
    for b in range(2):
        vectors = layer.qkv(seen[0][b]).detach()  # [17, 72]: queries, keys, values
        for h in range(heads):
            query = vectors[0, h * width : (h + 1) * width]
            keys = vectors[:, 24 + h * width : 24 + (h + 1) * width]
            scores = [math.exp(float(query @ key) / math.sqrt(width)) for key in keys]
            weights[b, h, 0] = torch.tensor(scores) / sum(scores)
    torch.testing.assert_close(attention, loop_map(weights, 1, 4), atol=1e-6, rtol=1e-4)


def test_value_of_a_picture_that_is_not_square():
    network = build("vit_tiny_patch16_224", img_size=(32, 64))
    x = torch.randn(2, 3, 32, 64)
    attention = class_attention(network, x)
    row = unfused_weights(network, x).mean(dim=1)[:, 0, 1:]
    assert attention.shape == (2, 4, 8)
    torch.testing.assert_close(attention.flatten(1), row / row.sum(dim=1, keepdim=True))


def test_value_a_network_below_wrappers_is_found():
    network, x = build("vit_tiny_patch16_224"), torch.randn(2, 3, 32, 32)
    wrapped = nn.Sequential(nn.Sequential(network), nn.Linear(5, 3))
    torch.testing.assert_close(class_attention(wrapped, x), class_attention(network, x))


def test_value_a_plain_layer_without_fused_attention():
    """The attention of the first DeiT and DINO repositories: no flag, no norms."""

    class Attention(nn.Module):
        num_heads = 1

        def __init__(self):
            super().__init__()
            self.qkv, self.attn_drop = nn.Linear(6, 18), nn.Dropout(0.5)

        def forward(self, x):
            q, k, v = self.qkv(x)[:, None].chunk(3, dim=-1)
            return self.attn_drop((q @ k.transpose(-2, -1)).softmax(dim=-1)) @ v

    layer, tokens = Attention(), torch.randn(2, 5, 6)
    weights = weights_of(layer, tokens)
    q, k, _ = layer.qkv(tokens).chunk(3, dim=-1)
    torch.testing.assert_close(weights[:, 0], (q @ k.transpose(1, 2)).softmax(dim=-1))
    assert not hasattr(layer, "fused_attn")


def test_value_a_class_token_that_sees_only_itself_gives_an_even_map():
    weights = torch.zeros(2, 3, 5, 5)
    weights[..., 0] = 1
    torch.testing.assert_close(class_row(weights, 1, (8, 8)), torch.full((2, 2, 2), 0.25))


@pytest.mark.parametrize(
    ("count", "size", "grid"),
    [(196, (224, 224), (14, 14)), (32, (32, 64), (4, 8)), (32, (64, 32), (8, 4)), (1, (8, 8), (1, 1))],
)
def test_value_grid(count, size, grid):
    assert grid_of(count, size) == grid


def test_invariant_maps_sum_to_one_in_training_mode_too():
    network = build("deit_tiny_patch16_224", attn_drop_rate=0.9, drop_path_rate=0.5).train()
    attention = class_attention(network, torch.randn(4, 3, 32, 32))
    torch.testing.assert_close(attention.sum(dim=(1, 2)), torch.ones(4))
    assert attention.min() > 0, "the weights must be those before dropout"


def test_invariant_watching_changes_nothing():
    """Neither the outputs, the gradients, the random state, nor the layer."""
    network, x = (
        build("vit_tiny_patch16_224", attn_drop_rate=0.3, proj_drop_rate=0.3).train(),
        torch.randn(2, 3, 32, 32),
    )

    def step() -> tuple[Tensor, Tensor, Tensor]:
        outputs = network(x)
        (grad,) = torch.autograd.grad(outputs.sum(), network.blocks[-1].attn.qkv.weight)
        return outputs, grad, torch.rand(3)

    torch.manual_seed(5)
    expected = step()
    torch.manual_seed(5)
    with watching_attention(network) as seen:
        watched = step()
    for ours, theirs in zip(watched, expected, strict=True):
        assert torch.equal(ours, theirs)
    layer = network.blocks[-1].attn
    assert len(seen) == 1 and layer.fused_attn
    for module in (network, layer, layer.attn_drop):
        assert not module._forward_hooks and not module._forward_pre_hooks
    network(x)
    assert len(seen) == 1


def test_invariant_hooks_are_removed_after_an_error():
    network = build("vit_tiny_patch16_224")
    with pytest.raises(RuntimeError, match="stop"), watching_attention(network):
        raise RuntimeError("stop")
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_gradient_none_to_the_maps_and_all_to_the_weights(precision):
    network, x = build("vit_tiny_patch16_224").train(), torch.randn(2, 3, 32, 32, requires_grad=True)
    cast = torch.autocast("cpu", precision, enabled=precision != torch.float32)
    with cast, watching_attention(network) as seen:
        outputs = network(x)
    outputs.float().sum().backward()
    assert not seen[0].requires_grad and seen[0].dtype == torch.float32
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert network.blocks[-1].attn.qkv.weight.grad.abs().sum() > 0


def test_gradient_checkpointing_still_works():
    network, x = build("vit_tiny_patch16_224").train(), torch.randn(2, 3, 32, 32)
    network.set_grad_checkpointing()
    with watching_attention(network) as seen:
        outputs = network(x)
    outputs.sum().backward()
    assert len(seen) == 1 and network.blocks[0].attn.qkv.weight.grad is not None


SWIN = {"depths": (1, 2), "num_heads": (2, 3), "embed_dim": 12, "window_size": 4, "num_classes": 5}


def window_loop(weights: Tensor, grid: tuple[int, int], side: int, shift: int) -> Tensor:
    """Where every weight of every window points to, one after the other; the mean over heads and queries."""
    rows, columns = (-(-length // side) for length in grid)
    batch, heads = len(weights) // (rows * columns), weights.shape[1]
    maps = torch.zeros(batch, *grid)
    for number, window in enumerate(weights):
        picture, place = divmod(number, rows * columns)
        for key in range(side * side):
            row = (place // columns) * side + key // side
            column = (place % columns) * side + key % side
            if row < grid[0] and column < grid[1]:  # not padding
                share = float(window[:, :, key].sum()) / (heads * side * side)
                maps[picture, (row + shift) % grid[0], (column + shift) % grid[1]] += share
    return maps / maps.sum(dim=(1, 2), keepdim=True)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    ("name", "size", "shift"),
    [
        ("swin_tiny_patch4_window7_224", (64, 64), 2),  # the last block is shifted: 8 x 8 in windows of 4
        ("swin_tiny_patch4_window7_224", (32, 32), 0),  # one window holds the whole map
        ("swin_tiny_patch4_window7_224", (80, 64), 2),  # padded to 12 x 8
        ("swinv2_tiny_window8_256", (64, 64), 2),
    ],
)
def test_value_of_windows_what_every_position_receives(name, size, shift, fused):
    network = timm.create_model(name, **SWIN, img_size=size).eval()
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    for layer in network.modules():
        if hasattr(layer, "fused_attn"):
            layer.fused_attn = fused
    x = torch.randn(2, 3, *size)
    attention = class_attention(network, x)
    grid = (size[0] // 8, size[1] // 8)
    assert network.layers[-1].blocks[-1].shift_size == (shift, shift)
    assert attention.shape == (2, *grid)
    expected = window_loop(unfused_weights(network, x), grid, 4, shift)
    torch.testing.assert_close(attention, expected, atol=1e-6, rtol=1e-4)
    assert attention.std() > 0.1 / (grid[0] * grid[1]), "a flat map would agree with anything"


def test_value_windows_are_put_back_where_the_pixels_are():
    """Values that name their pixel, cut into windows by timm itself."""
    from timm.models.swin_transformer import window_partition

    pixels = torch.arange(2 * 7 * 10, dtype=torch.float32).view(2, 7, 10)
    rolled = torch.roll(pixels, (-1, -2), (1, 2))
    padded = nn.functional.pad(rolled, (0, 2, 0, 1))[..., None]
    values = window_partition(padded, (4, 6)).flatten(1)
    assert torch.equal(join_windows(values, (7, 10), Windows((4, 6), (1, 2))), pixels)


def test_value_without_a_class_token_what_every_patch_receives():
    network = build("vit_tiny_patch16_224", class_token=False, global_pool="avg", reg_tokens=2)
    x = torch.randn(2, 3, 32, 32)
    mean = unfused_weights(network, x).mean(dim=(1, 2))[:, 2:]
    attention = class_attention(network, x)
    torch.testing.assert_close(attention.flatten(1), mean / mean.sum(dim=1, keepdim=True))


def test_error_a_network_without_attention():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())
    with pytest.raises(ValueError, match="needs attention, which .* take a ViT, DeiT or Swin"):
        class_attention(network, torch.randn(2, 3, 32, 32))


def test_error_windows_that_nobody_describes():
    network = timm.create_model("swin_tiny_patch4_window7_224", **SWIN, img_size=64)
    del network.layers[-1].blocks[-1].shift_size
    network.layers[-1].blocks[-1]._attn = lambda x: windows_without_shift(network.layers[-1].blocks[-1], x)
    with pytest.raises(ValueError, match=r"\(WindowAttention\) looks at parts of the picture"):
        class_attention(network, torch.randn(2, 3, 64, 64))


def windows_without_shift(block: nn.Module, x: Tensor) -> Tensor:
    """A block's attention in four windows; nothing on the block says so."""
    parts = x.unflatten(1, (2, 4)).unflatten(3, (2, 4)).transpose(2, 3).reshape(-1, 16, x.shape[-1])
    return block.attn(parts).view(x.shape)


def test_error_a_layer_that_hides_its_weights():
    class Hidden(nn.Module):
        num_heads, attn_drop = 1, nn.Dropout(0.0)

        def forward(self, x):
            return x

    with pytest.raises(ValueError, match=r"\(Hidden\) does not show its weights"):
        weights_of(Hidden(), torch.randn(2, 5, 6))


def test_error_tokens_that_do_not_fill_the_picture():
    with pytest.raises(ValueError, match="attention to 18 patches does not fill a picture of 32 x 32"):
        class_row(torch.rand(2, 3, 19, 19), 1, (32, 32))
