"""How exact numbers must be: half precision is for networks, not for losses and softmax."""

import torch
from torch import Tensor


def widened(values: Tensor) -> Tensor:
    """Half precision as float32; float32 and float64 as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
