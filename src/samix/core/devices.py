"""Tensors on any device: when Python may look at values, and how draws get there without waiting.

Draws are made on the CPU, so that every device gives the same ones. To look at values of a GPU, Python would
have to wait until it has done all its work; while torch.compile traces, there are no values yet.
"""

import torch
from torch import Tensor


def at_hand(values: Tensor) -> bool:
    """Whether Python may look at the values at no cost: they lie on the CPU, and nothing is being traced."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def within(values: Tensor, low: int, high: int) -> bool:
    """Whether all values, of which there is at least one, lie in [low, high]; NaN does not."""
    if values.numel() == 1:
        return bool(low <= values.item() <= high)
    least, most = values.aminmax()
    return least.item() >= low and most.item() <= high


def send(values: Tensor, device: torch.device | str | None) -> Tensor:
    """The values on the device (None: where they are), which is not waited for.

    The driver of a GPU keeps a copy of what it is sent. Metal reads the values later, when they may be gone.
    """
    if device is None or values.device == device:
        return values
    return values.to(device, non_blocking=torch.device(device).type != "mps")


def widen(values: Tensor) -> Tensor:
    """The values in float64, where rounding down is safe; in float32 on Metal, which has nothing wider."""
    return values.to(torch.float32 if values.device.type == "mps" else torch.float64)
