"""The queue of keys that serve as negatives (MoCo, arXiv 1911.05722)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.distributed import Replicated
from samix.core.shapes import Embeddings, Labels

UNLABELLED = -1


class Queue(Replicated):
    """A ring of the latest keys, unit vectors, with their labels where there are any; a checkpoint holds it.

    Differs from the original: any length, also one that the batch does not divide or that is shorter.
    """

    keys: Tensor
    labels: Tensor
    count: Tensor

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        if length < 1:
            raise ValueError(f"the queue must hold at least 1 key, got {length}.")
        self.register_buffer("keys", F.normalize(torch.randn(length, dim), dim=1))
        self.register_buffer("labels", torch.full((length,), UNLABELLED))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def read(self) -> Float[Tensor, "K D"]:
        """All keys in any order; a copy, because the queue moves on before the backward pass."""
        return self.keys.clone()

    def read_labels(self) -> Int[Tensor, "K"]:
        """The keys' labels, in the order of `read`."""
        return self.labels.clone()

    @property
    def is_full(self) -> bool:
        """Whether every key was pushed, none is left of the random start."""
        return int(self.count) >= len(self.keys)

    @torch.no_grad()
    def push(self, keys: Embeddings, labels: Labels | None = None) -> None:
        """The newest keys replace the oldest; of more keys than fit, the last remain."""
        length = len(self.keys)
        kept = keys.detach()[-length:].to(self.keys)
        first = int(self.count) + len(keys) - len(kept)
        places = (first + torch.arange(len(kept), device=self.keys.device)) % length
        self.keys[places] = kept
        self.labels[places] = UNLABELLED if labels is None else labels[-length:]
        self.count += len(keys)
