"""The queue of keys that serve as negatives (MoCo, arXiv 1911.05722)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from samix.typing import Embeddings


class Queue(nn.Module):
    """A ring of the latest keys, unit vectors; part of the state that a checkpoint holds.

    Differs from the original: any length, also one that the batch does not divide or that is shorter.
    """

    keys: Tensor
    pointer: Tensor

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        if length < 1:
            raise ValueError(f"the queue must hold at least 1 key, got {length}.")
        self.register_buffer("keys", F.normalize(torch.randn(length, dim), dim=1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))

    def read(self) -> Float[Tensor, "K D"]:
        """All keys in any order; a copy, because the queue moves on before the backward pass."""
        return self.keys.clone()

    @torch.no_grad()
    def push(self, keys: Embeddings) -> None:
        """The newest keys replace the oldest; of more keys than fit, the last remain."""
        length = len(self.keys)
        keys = keys.detach()[-length:].to(self.keys)
        places = (int(self.pointer) + torch.arange(len(keys), device=self.keys.device)) % length
        self.keys[places] = keys
        self.pointer.fill_((int(self.pointer) + len(keys)) % length)
