"""Snapshots of a run, and going on from one: the same recipe or a clear refusal."""

import warnings
from pathlib import Path
from typing import Any

from lightning_fabric.plugins.precision import Precision
from torch import nn, optim

from samix.core.distributed import rank
from samix.data.datasets import Split
from samix.data.loaders import TrainPlan
from samix.engine.recipe import Recipe, to_dict
from samix.runs.checkpoint import load_checkpoint, restore
from samix.runs.settings import comparable, differences, list_differences, modernise

MOVED = ("machine.devices:", "machine.nodes:")
"""A run may be resumed on another number of devices; it warns of it."""


def snapshot(
    recipe: Recipe,
    split: Split,
    model: nn.Module,
    optimizer: optim.Optimizer,
    precision: Precision,
    step: int,
) -> dict[str, Any]:
    """Everything that a resumed run needs; random streams follow from seed and step."""
    return {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "precision": precision.state_dict(),
        "recipe": comparable(to_dict(recipe)),
        "pictures": pictures_of(split),
    }


def pictures_of(split: Split) -> dict[str, Any]:
    """What tells one set of training pictures from another, wherever it lies."""
    return {"count": len(split.train.labels), "classes": list(split.train.classes)}


def resume(
    recipe: Recipe,
    folder: Path,
    split: Split,
    model: nn.Module,
    optimizer: optim.Optimizer,
    precision: Precision,
) -> int:
    """Loads the folder's last checkpoint and returns its step; 0 where there is none.

    `precision` holds the scale of losses in float16, which a resumed run must not find out anew.
    """
    found = load_checkpoint(folder)
    if found is None:
        return 0
    moved = check_recipe(found, recipe, folder)
    check_pictures(found, split, folder)
    restore(model, found["model"], folder)
    optimizer.load_state_dict(found["optimizer"])
    if found.get("precision"):
        precision.load_state_dict(found["precision"])
    total = TrainPlan(len(split.train.labels), recipe.batch_size, recipe.epochs).total
    if moved and found["step"] < total and rank() == 0:
        warnings.warn(
            f"{folder} goes on with other devices ({list_differences(moved)}), which draw other pairs and "
            "norm other shares of a batch: the result will not be bit-equal to that of the same devices.",
            stacklevel=2,
        )
    return found["step"]


def check_recipe(found: dict[str, Any], recipe: Recipe, folder: Path) -> list[str]:
    """Refuses to go on with another recipe than a checkpoint's; returns in which devices the two differ."""
    now = comparable(to_dict(recipe))
    # Checkpoints of older versions do not say on what machine they were made.
    changed = differences({"machine": now["machine"]} | modernise(found["recipe"]), now)
    moved = [words for words in changed if words.startswith(MOVED)]
    if refused := [words for words in changed if words not in moved]:
        raise ValueError(
            f"{folder} holds a run of another recipe: {list_differences(refused)}. "
            "Choose another folder with --out, or remove this one."
        )
    return moved


def check_pictures(found: dict[str, Any], split: Split, folder: Path) -> None:
    """Refuses to go on with other training pictures than a checkpoint was made with."""
    now = pictures_of(split)
    if changed := differences(found.get("pictures", now), now):
        raise ValueError(
            f"{folder} holds a run on other training pictures: {'; '.join(changed)}. "
            "Choose another folder with --out, or the right --data.root."
        )
