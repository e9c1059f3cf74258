"""Where a transformer looks: the maps that weigh labels in TransMix and TokenMix.

With a class token: its attention to the patches. Without one, as in Swin: the attention that each position
receives, mean over all that ask, windows put back in their places. Works with timm's ViT, DeiT, BEiT, EVA,
CaiT and Swin and every network whose attention layers apply a dropout `attn_drop` to their softmax weights.
The last such layer is run a second time on what it saw, without fused attention and without gradient, up to
that dropout: its own code gives the weights, with whatever position bias, rotation or normalisation it has,
and the network's forward pass stays as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.shapes import AttentionMap, Size
from samix.nn.conventions import patch_grid
from samix.nn.encoder import Reached
from samix.nn.windows import block_of, join_windows, received, windows_of


class Sides(NamedTuple):
    """What the maps of one forward pass belong to."""

    batch: int
    picture: Size
    grid: Size | None = None
    """Positions of a map that is cut into windows."""


def last_attention(network: nn.Module) -> nn.Module:
    """The last self-attention layer, or an error for a network without one."""
    layers = [m for m in network.modules() if hasattr(m, "num_heads") and hasattr(m, "attn_drop")]
    if not layers:
        raise ValueError(
            "the policy needs attention, which this network does not have; "
            "take a ViT, DeiT or Swin of timm (--encoder.name deit-s), or a policy without attention."
        )
    return layers[-1]


def has_class_token(network: nn.Module) -> bool:
    """Whether a token stands for the class."""
    return any(getattr(module, "cls_token", None) is not None for module in network.modules())


def prefix_tokens(network: nn.Module) -> int:
    """How many tokens stand before the patches (class token, distillation token, registers)."""
    return max(int(getattr(m, "num_prefix_tokens", 1)) for m in network.modules())


@torch.no_grad()
def weights_of(layer: Any, *inputs: Any, **options: Any) -> Float[Tensor, "B heads q k"]:
    """The softmax weights of an attention layer, before dropout, as its own code computes them."""

    def stop(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        raise Reached(arguments[0])

    fused = getattr(layer, "fused_attn", False)
    handle = layer.attn_drop.register_forward_pre_hook(stop)
    try:
        if fused:
            layer.fused_attn = False
        layer.forward(*inputs, **options)  # not layer(...): that would run its hooks
    except Reached as reached:
        return reached.output
    finally:
        handle.remove()
        if fused:
            layer.fused_attn = fused
    raise ValueError(
        f"the last attention layer ({type(layer).__name__}) does not show its weights: it must pass them "
        "through `attn_drop`, as timm's layers do. Switch its fused attention off, or take timm's ViT."
    )


def grid_of(count: int, size: Size) -> tuple[int, int]:
    """Rows and columns of the grid of `count` square patches that cover a picture of this size."""
    grid = patch_grid(count, size)
    if grid is None:
        raise ValueError(
            f"attention to {count} patches does not fill a picture of {size[0]} x {size[1]} pixels with "
            "square patches; the network must set `num_prefix_tokens` if it has registers."
        )
    return grid


def class_row(weights: Float[Tensor, "B heads q k"], prefix: int, size: Size) -> AttentionMap:
    """Attention of token 0 to the patches, mean over heads, as a map that sums to 1."""
    return patch_map(weights[:, :, 0, prefix:].float().mean(dim=1), size)


def received_map(weights: Float[Tensor, "B heads q k"], prefix: int, size: Size) -> AttentionMap:
    """Attention that the patches receive, mean over heads and all tokens, as a map that sums to 1."""
    return patch_map(received(weights)[:, prefix:], size)


def patch_map(patches: Float[Tensor, "B k"], size: Size) -> AttentionMap:
    """What stands for each patch as a map that sums to 1."""
    return shares(patches.unflatten(1, grid_of(patches.shape[1], size)))


def shares(maps: AttentionMap) -> AttentionMap:
    """The maps divided by their sums."""
    # A class token that sees only itself (half precision rounds the rest to 0) gives an even map, not 0 / 0.
    maps = maps + torch.finfo(maps.dtype).tiny
    return maps / maps.sum(dim=(1, 2), keepdim=True)


@contextmanager
def watching_attention(network: nn.Module) -> Iterator[list[AttentionMap]]:
    """A list that receives the attention map of every forward pass meanwhile."""
    seen: list[Tensor] = []
    sides: list[Sides] = []
    layer, prefix, classes = last_attention(network), prefix_tokens(network), has_class_token(network)
    block = None if classes else block_of(network, layer)

    def measure(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        sides.append(Sides(len(inputs[0]), tuple(inputs[0].shape[-2:])))

    def measure_grid(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        sides[-1] = sides[-1]._replace(grid=tuple(inputs[0].shape[1:3]))  # [B, h, w, C]

    def look(module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        weights, (batch, size, grid) = weights_of(module, *inputs, **options), sides[-1]
        if block is not None and grid is not None:
            seen.append(shares(join_windows(received(weights), grid, windows_of(block))))
        elif len(weights) != batch:
            raise ValueError(
                f"the last attention layer ({type(module).__name__}) looks at parts of the picture, and its "
                "network does not say which (window_size, shift_size of the block, as in timm's Swin). Take "
                "a ViT, DeiT or Swin of timm, or a policy without attention."
            )
        else:
            seen.append((class_row if classes else received_map)(weights, prefix, size))

    # Behind the layer, because older autocast would lend weights cast without gradient to its own pass.
    handles = [
        network.register_forward_pre_hook(measure),
        layer.register_forward_hook(look, with_kwargs=True),
    ]
    if block is not None:
        handles.append(block.register_forward_pre_hook(measure_grid))
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def class_attention(network: nn.Module, x: Tensor) -> AttentionMap:
    """The map for one batch of images."""
    with watching_attention(network) as seen:
        network(x)
    return seen[-1]
