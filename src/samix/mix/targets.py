"""Labels of every kind that a training loop may have, mixed as their images were.

Class indices and rows become soft rows, floats of any other shape (numbers to regress) are weighed by lam,
maps of the images' size are mixed by the mask. Tuples, lists and dictionaries hold several of these, one for
each head of a network.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from samix.core.mixed import Mixed
from samix.mix.batches import is_torchvision, like_given, plain_tensor, rebuild

Target: TypeAlias = Any
"""A tensor, or a tuple, list or dictionary of targets."""
Classes: TypeAlias = Any
"""How many classes each target has: a number, None, or as the targets are held."""


def each_target(target: Target, change: Callable[[Tensor], Any]) -> Any:
    """The same tuple, list or dictionary with every tensor in it changed."""
    if isinstance(target, Mapping):
        return {name: each_target(part, change) for name, part in target.items()}
    if isinstance(target, tuple | list):
        return rebuild(target, [each_target(part, change) for part in target])
    return change(target)


def check_target(target: Target, count: int) -> None:
    """Refuses what is no tensor, or not one label per image."""
    if isinstance(target, Tensor):
        if target.is_complex() or target.layout is not torch.strided:
            raise ValueError(f"labels must be whole or real numbers; got {target.dtype}, {target.layout}.")
        if target.shape[:1] != (count,):
            raise ValueError(f"{count} images but {len(target) if target.ndim else 'no'} labels.")
    elif isinstance(target, Mapping | tuple | list):
        if not target:
            raise ValueError(f"labels must be tensors; got an empty {type(target).__name__}.")
        for part in target.values() if isinstance(target, Mapping) else target:
            check_target(part, count)
    else:
        hint = "" if isinstance(target, str) else " Write torch.as_tensor(y)."
        raise ValueError(f"labels must be tensors; got {type(target).__name__}.{hint}")


def mix_target(mixed: Mixed, target: Target, classes: Classes = None, smoothing: float = 0.0) -> Target:
    """The target of the mixed batch; `classes` is one number for all heads, or one per head."""
    if isinstance(target, Mapping):
        return {
            name: mix_target(mixed, part, part_of(classes, name), smoothing) for name, part in target.items()
        }
    if isinstance(target, tuple | list):
        parts = [
            mix_target(mixed, part, part_of(classes, place), smoothing) for place, part in enumerate(target)
        ]
        return rebuild(target, parts)
    return mix_one(mixed, target, classes, smoothing)


def part_of(classes: Classes, head: str | int) -> Classes:
    """The number of classes of one head."""
    if not isinstance(classes, Mapping | tuple | list):
        return classes
    try:
        return classes[head]  # type: ignore[index]
    except (KeyError, IndexError, TypeError):
        raise ValueError(f"classes has no number for the labels {head!r}; got {classes}.") from None


def mix_one(mixed: Mixed, y: Tensor, classes: int | None, smoothing: float) -> Tensor:
    """One target: a map by the mask, a row or class index as soft row, any other float by lam."""
    if y.ndim > 2 and y.shape[-2:] == mixed.mask.shape[-2:]:
        dense = mixed.dense(plain_tensor(y))
        return like_given(dense, y) if is_torchvision(y) else dense
    if y.ndim == 2 or not y.is_floating_point():
        width = y.shape[1] if y.ndim == 2 and classes is None else classes
        if width is None:
            raise ValueError("soft labels need the number of classes: Mix(..., classes=N), or use mix.pairs.")
        return mixed.soft_labels(y, width, smoothing)
    if classes is not None or smoothing:
        raise ValueError(
            f"float labels {list(y.shape)} are numbers to regress, which have no classes and no smoothing. "
            "Leave these out, or write y.long() for class indices."
        )
    return mixed.values(y)
