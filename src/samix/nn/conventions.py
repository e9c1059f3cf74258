"""What networks of other libraries have in common: how they give logits, which tokens are no patches, ...

timm, torchvision and Hugging Face transformers tell these things in different ways, or not at all.
"""

from typing import Any

from torch import Tensor, nn

from samix.core.shapes import Size

SINGLE_TOKENS = ("cls_token", "class_token", "distillation_token", "dist_token")
"""Parameters that stand for one token before the patches, in timm, torchvision and transformers."""
SEVERAL_TOKENS = ("register_tokens", "reg_token", "storage_tokens")
"""Parameters [1, n, C] that stand for n of them."""


def as_logits(output: Any) -> Any:
    """A network's logits, also of one that gives them as `output.logits` (Hugging Face's ModelOutput)."""
    return getattr(output, "logits", output)


def as_tensor(output: Any) -> Any:
    """A layer's output; of a tuple, as transformers' layers give, its first tensor."""
    if isinstance(output, tuple) and output and isinstance(output[0], Tensor):
        return output[0]
    return output


def count_prefix_tokens(network: nn.Module) -> int:
    """How many tokens stand before the patches: what the network says (timm), or by its parameters' names."""
    for module in network.modules():
        if hasattr(module, "num_prefix_tokens"):
            return int(module.num_prefix_tokens)  # type: ignore[arg-type]
    names = [(name.rpartition(".")[2], parameter) for name, parameter in network.named_parameters()]
    several = sum(parameter.shape[-2] for name, parameter in names if name in SEVERAL_TOKENS)
    return several + sum(name in SINGLE_TOKENS for name, _ in names)


def image_channels(network: nn.Module) -> int:
    """How many channels the network's images have: those of its first convolution, 3 without one."""
    convolutions = (module for module in network.modules() if isinstance(module, nn.Conv2d))
    return next((conv.in_channels for conv in convolutions if conv.in_channels), 3)


def patch_side(network: nn.Module) -> int:
    """The side in pixels of a transformer's square patches, as its patch embedding says."""
    for module in network.modules():
        side = getattr(module, "patch_size", None)
        sides = {side} if isinstance(side, int) else set(side or ())
        if len(sides) == 1:
            return int(sides.pop())
    raise ValueError(
        "the network does not say how large its patches are (timm's have `patch_embed.patch_size`), or they "
        "are not square; set mixup.patch to their side in pixels."
    )


def patch_grid(count: int, size: Size) -> tuple[int, int] | None:
    """Rows and columns of `count` nearly square patches that cover a picture of this size, if there are any.

    >>> patch_grid(196, (224, 224)), patch_grid(140, (224, 160)), patch_grid(197, (224, 224))
    ((14, 14), (14, 10), None)
    """
    rows = max(round((count * size[0] / size[1]) ** 0.5), 1)
    columns = count // rows
    if rows * columns != count:
        return None
    height, width = size[0] / rows, size[1] / columns
    return (rows, columns) if min(height, width) > 0.8 * max(height, width) else None
