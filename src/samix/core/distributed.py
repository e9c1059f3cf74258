"""What several processes share: rows of all, with gradients, random choices of the first, one error."""

import time

import torch
from torch import Tensor, distributed, nn
from torch.distributed.nn import functional as collective

from samix.core.shapes import Index


def world() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """Which of them this one is."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def leave() -> None:
    """Ends what this process shares with the others, whose threads must not outlive Python."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


FAILED = "samix/failed"
"""Counts the processes that ended in an error, in the store by which they found each other."""


def first_to_fail() -> bool:
    """Whether no other process has ended in an error yet: one sentence is enough for all.

    True, too, where the process that counts, the first one, is gone without a word.
    """
    if world() == 1:
        return True
    try:
        return distributed.distributed_c10d._get_default_store().add(FAILED, 1) == 1
    except RuntimeError:
        return True


def leave_last(patience: float = 1.0) -> None:
    """Leaves the others; the first process, which counts errors, waits for those that fail with it."""
    if world() == 1:
        return
    store, end = distributed.distributed_c10d._get_default_store(), time.monotonic() + patience
    count, first = world(), rank() == 0
    leave()
    while first and store.add(FAILED, 0) < count and time.monotonic() < end:
        time.sleep(0.05)


def gather(rows: Tensor) -> Tensor:
    """The rows of all processes in the order of their ranks; gradients find the way back."""
    if world() == 1:
        return rows
    return torch.cat(list(collective.all_gather(rows.contiguous())))


@torch.no_grad()
def gather_constant(rows: Tensor) -> Tensor:
    """The rows of all processes, without gradients; every process must have equally many."""
    if world() == 1:
        return rows.detach()
    parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(world())]
    distributed.all_gather(parts, rows.contiguous())
    return torch.cat(parts)


def broadcast(values: Tensor) -> None:
    """Gives every process the first one's values, in place."""
    if world() > 1:
        distributed.broadcast(values, src=0)


class Replicated(nn.Module):
    """A module whose buffers all processes change alike, so that nobody needs to send them around."""


def own_places(count: int, device: torch.device) -> Index:
    """Where this process's `count` rows stand among the gathered ones."""
    return rank() * count + torch.arange(count, device=device)


def shared_permutation(count: int, device: torch.device) -> Index:
    """A random order that the first process draws for all."""
    order = torch.randperm(count).to(device)
    broadcast(order)
    return order
