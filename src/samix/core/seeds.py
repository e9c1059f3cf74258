"""Randomness as a function of (seed, step, ...): nothing to save, so resuming is exact by design."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor


def fold(seed: int, *keys: int | str) -> int:
    """One 63-bit seed out of a seed and any keys, the same on every machine."""
    text = "/".join(str(key) for key in (seed, *keys))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Runs a block on its own CPU random stream and leaves the caller's untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        yield


def uniform(shape: tuple[int, ...], low: float, high: float) -> Float[Tensor, "..."]:
    """Numbers between low and high."""
    return torch.empty(shape).uniform_(low, high)
