"""Pictures read into memory by a pool of threads, once and without a second copy."""

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

import torch
from torch import Tensor

CHUNK = 16
"""Pictures that a thread reads at a time: enough to make up for handing them out."""


def spread_positions(count: int, wanted: int) -> range:
    """Positions of about `wanted` of `count` pictures, spread evenly, to stand for all."""
    return range(0, count, max(count // wanted, 1))


def bytes_decoded(size: Callable[[int], tuple[int, int]], count: int, short: int | None) -> float:
    """Bytes of `count` pictures, judged by the `size` (width, height) of a few, reduced to `short`."""
    probe = [size(position) for position in spread_positions(count, 16)]
    if short is not None:
        shares = [min(1.0, short / min(each)) for each in probe]
        probe = [(round(w * s), round(h * s)) for (w, h), s in zip(probe, shares, strict=True)]
    return count * 3 * sum(w * h for w, h in probe) / len(probe)


def read_all(read: Callable[[int], Tensor], count: int) -> Tensor | list[Tensor]:
    """Reads pictures uint8 [3, H, W] into one tensor [N, 3, H, W] where all sizes agree, else into a list."""
    shapes = {read(position).shape for position in spread_positions(count, 4)}
    with ThreadPoolExecutor() as pool:
        if len(shapes) != 1:
            return list(pool.map(read, range(count)))
        return _fill(torch.empty(count, *shapes.pop(), dtype=torch.uint8), read, pool)


def read_readable(
    read: Callable[[int], Tensor], count: int
) -> tuple[Tensor | list[Tensor], dict[int, Exception]]:
    """`read_all` of the pictures that can be read, and by position why the others cannot."""
    failed: dict[int, Exception] = {}

    def try_read(position: int) -> Tensor:
        try:
            return read(position)
        except (ValueError, OSError) as error:
            failed[position] = error
            return torch.empty(3, 0, 0, dtype=torch.uint8)

    pictures = read_all(try_read, count)
    if not failed or len(failed) == count:
        return pictures, failed
    kept = [picture for i, picture in enumerate(pictures) if i not in failed]
    return torch.stack(kept) if len({picture.shape for picture in kept}) == 1 else kept, failed


def _fill(whole: Tensor, read: Callable[[int], Tensor], pool: Executor) -> Tensor | list[Tensor]:
    # Each picture goes to its place as soon as it is read: a list to be stacked would hold all twice.
    def place(start: int) -> dict[int, Tensor]:
        others = {}
        for position in range(start, min(start + CHUNK, len(whole))):
            picture = read(position)
            if picture.shape == whole.shape[1:]:
                whole[position] = picture
            else:
                others[position] = picture
        return others

    others: dict[int, Tensor] = {}
    for found in pool.map(place, range(0, len(whole), CHUNK)):
        others |= found
    return [others.get(i, picture) for i, picture in enumerate(whole)] if others else whole
