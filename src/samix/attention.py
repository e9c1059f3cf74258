"""Where the class token of a transformer looks: the maps that weigh labels in TransMix and TokenMix.

Works with timm's ViT and DeiT and every network whose last attention layer has timm's `qkv`, `num_heads` and
`scale`. Only the class token's row is computed, from the input that the layer saw in its own forward pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from samix.typing import AttentionMap


def last_attention(network: nn.Module) -> nn.Module:
    """The last self-attention layer, or an error for a network without one or without a class token."""
    layers = [m for m in network.modules() if hasattr(m, "qkv") and hasattr(m, "num_heads")]
    tokens = [m for m in network.modules() if getattr(m, "cls_token", None) is not None]
    if not layers or not tokens:
        raise ValueError(
            "the policy needs attention of a class token, which this network does not have; "
            "take a ViT or DeiT (--encoder.name deit-s), or a policy without attention."
        )
    return layers[-1]


def prefix_tokens(network: nn.Module) -> int:
    """How many tokens stand before the patches (class token, registers)."""
    return max([int(getattr(m, "num_prefix_tokens", 1)) for m in network.modules()], default=1)


@torch.no_grad()
def class_row(layer: Any, tokens: Float[Tensor, "B n C"], prefix: int) -> AttentionMap:
    """Softmax attention of token 0 to the patches, mean over heads, as a map that sums to 1."""
    batch, count, width = tokens.shape
    query, key, _ = layer.qkv(tokens).view(batch, count, 3, layer.num_heads, -1).unbind(2)  # [B, n, heads, d]
    query, key = layer.q_norm(query[:, 0]), layer.k_norm(key)
    weights = torch.einsum("bhd,bnhd->bhn", query * layer.scale, key).float().softmax(dim=-1)
    patches = weights.mean(dim=1)[:, prefix:]
    side = int(patches.shape[1] ** 0.5)
    if side * side != patches.shape[1]:
        raise ValueError(f"attention to {patches.shape[1]} patches is not a square map; use square pictures.")
    return (patches / patches.sum(dim=1, keepdim=True)).unflatten(1, (side, side))


@contextmanager
def watching_attention(network: nn.Module) -> Iterator[list[AttentionMap]]:
    """A list that receives the class token's attention map of every forward pass meanwhile."""
    seen: list[Tensor] = []
    layer, prefix = last_attention(network), prefix_tokens(network)

    def look(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen.append(class_row(module, inputs[0].detach(), prefix))

    handle = layer.register_forward_pre_hook(look)
    try:
        yield seen
    finally:
        handle.remove()


def class_attention(network: nn.Module, x: Tensor) -> AttentionMap:
    """The map for one batch of images."""
    with watching_attention(network) as seen:
        network(x)
    return seen[-1]
