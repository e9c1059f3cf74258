"""Randomness as a function of (seed, step, ...): nothing to save, so resuming is exact by design."""

import hashlib
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.data import get_worker_info

from samix.core.distributed import rank
from samix.core.shapes import RandomSource


def fold(seed: int, *keys: int | str) -> int:
    """One 63-bit seed out of a seed and any keys, the same on every machine."""
    text = "/".join(str(key) for key in (seed, *keys))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Runs a block on its own CPU random streams (torch's, Python's, NumPy's) and leaves the caller's
    untouched."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002, timm draws from it
    try:
        with torch.random.fork_rng(devices=[]):
            torch.random.default_generator.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def own_stream(generator: RandomSource) -> RandomSource:
    """The generator for the draws of one batch, which no loader's worker and no other process repeats.

    Workers and processes hold copies of one generator. So a worker, and every process but the first, folds a
    number drawn from its copy with its rank and with the worker's seed, which is another one in each epoch.
    Elsewhere the generator itself is used. None is torch's own, which loaders seed for each worker.
    """
    if generator is None:
        return None
    worker, process = get_worker_info(), rank() or int(os.environ.get("RANK") or 0)
    if worker is None and process == 0:
        return generator
    key = int(torch.randint(2**63 - 1, (), generator=generator))
    return torch.Generator().manual_seed(fold(key, process, 0 if worker is None else worker.seed))


def uniform(shape: tuple[int, ...], low: float, high: float) -> Float[Tensor, "..."]:
    """Numbers between low and high."""
    return torch.empty(shape).uniform_(low, high)
