"""Where the tokens of a transformer look: what weighs labels in TransMix, TokenMix, SMMix, MixPro, TL-Align.

Works with timm's ViT, DeiT, BEiT, EVA and CaiT and every network with a class token whose attention layers
apply a dropout `attn_drop` to their softmax weights. The last such layer (or each of them) is run a second
time on what it saw, without fused attention and without gradient, up to that dropout: its own code gives the
weights, with whatever position bias, rotation or normalisation it has, and the network's forward pass stays
as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.core.shapes import AttentionMap, Size
from samix.nn.conventions import patch_grid
from samix.nn.encoder import Reached

TokenWeights: TypeAlias = Float[Tensor, "B n n"]
"""How much every token (row) takes from every other, mean over heads; rows sum to 1."""


def attention_layers(network: nn.Module) -> list[nn.Module]:
    """All self-attention layers, or an error for a network without one or without a class token."""
    modules = list(network.modules())
    layers = [m for m in modules if hasattr(m, "num_heads") and hasattr(m, "attn_drop")]
    if not layers or all(getattr(m, "cls_token", None) is None for m in modules):
        raise ValueError(
            "the policy needs attention of a class token, which this network does not have; "
            "take a ViT or DeiT of timm (--encoder.name deit-s), or a policy without attention."
        )
    return layers


def last_attention(network: nn.Module) -> nn.Module:
    """The last self-attention layer."""
    return attention_layers(network)[-1]


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
        f"an attention layer ({type(layer).__name__}) does not show its weights: it must pass them "
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
    patches = weights[:, :, 0, prefix:].float().mean(dim=1)
    # A class token that sees only itself (half precision rounds the rest to 0) gives an even map, not 0 / 0.
    patches = patches + torch.finfo(patches.dtype).tiny
    return (patches / patches.sum(dim=1, keepdim=True)).unflatten(1, grid_of(patches.shape[1], size))


@contextmanager
def watching_attention(network: nn.Module) -> Iterator[list[AttentionMap]]:
    """A list that receives the class token's attention map of every forward pass meanwhile."""
    seen: list[Tensor] = []
    sizes: list[tuple[int, int]] = []
    layer, prefix = last_attention(network), prefix_tokens(network)

    def measure(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        sizes.append((inputs[0].shape[-2], inputs[0].shape[-1]))

    def look(module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        seen.append(class_row(weights_of(module, *inputs, **options), prefix, sizes[-1]))

    # Behind the layer, because older autocast would lend weights cast without gradient to its own pass.
    handles = [
        network.register_forward_pre_hook(measure),
        layer.register_forward_hook(look, with_kwargs=True),
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def watching_tokens(network: nn.Module) -> Iterator[list[TokenWeights]]:
    """A list that receives the weights of every attention layer, in the order in which they run."""
    seen: list[Tensor] = []

    def look(module: nn.Module, inputs: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        weights = weights_of(module, *inputs, **options).float().mean(dim=1)
        if weights.shape[1] != weights.shape[2]:
            raise ValueError(
                f"{type(module).__name__} attends with {weights.shape[1]} of {weights.shape[2]} tokens; the "
                "policy needs a network in which all tokens attend to all, such as a ViT or DeiT of timm."
            )
        seen.append(weights)

    handles = [layer.register_forward_hook(look, with_kwargs=True) for layer in attention_layers(network)]
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
