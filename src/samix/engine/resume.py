"""Snapshots of a run, and going on from one: the same recipe, perhaps for more epochs, or a clear refusal."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

from lightning_fabric.plugins.precision import Precision
from torch import nn, optim

from samix.core.distributed import rank
from samix.data.datasets import Split
from samix.data.loaders import TrainPlan
from samix.engine.recipe import Recipe, to_dict
from samix.runs.checkpoint import load_checkpoint, restore
from samix.runs.schema import is_whole
from samix.runs.settings import comparable, differences, list_differences, modernise

MOVED = ("machine.devices:", "machine.nodes:")
"""A run may be resumed on another number of devices; it warns of it."""
LONGER = "epochs:"
"""A run may go on for another number of epochs than was asked for at first; it warns of it, too."""


class Changes(NamedTuple):
    """In what a recipe that may go on from a checkpoint differs from the checkpoint's."""

    moved: list[str]
    """Its devices."""
    planned: int
    """The epochs that the checkpoint's recipe asked for."""


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
    changes = check_recipe(found, recipe, folder)
    check_pictures(found, split, folder)
    plan = TrainPlan(len(split.train.labels), recipe.batch_size, recipe.epochs)
    done = found["step"] // plan.steps_per_epoch
    check_epochs(done, changes.planned, recipe, folder)
    if found["step"] > max(changes.planned, recipe.epochs) * plan.steps_per_epoch:
        raise ValueError(
            f"the checkpoint of {folder} is of step {found['step']}, and its run has only {plan.total}. "
            "Remove it to start again."
        )
    restore(model, found["model"], folder)
    try:
        optimizer.load_state_dict(found["optimizer"])
        if found.get("precision"):
            precision.load_state_dict(found["precision"])
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        raise ValueError(
            f"the checkpoint of {folder} does not fit the run's optimizer ({error}). Remove it to begin anew."
        ) from error
    if rank() == 0 and found["step"] < plan.total:
        warn_of_changes(changes, done, recipe, folder)
    return found["step"]


def warn_of_changes(changes: Changes, done: int, recipe: Recipe, folder: Path) -> None:
    """Says why the result of a run that goes on will not be that of a run which never stopped."""
    if changes.moved:
        warnings.warn(
            f"{folder} goes on with other devices ({list_differences(changes.moved)}), which draw other "
            "pairs and norm other shares of a batch: the result will not be bit-equal to that of the same "
            "devices.",
            stacklevel=3,
        )
    if changes.planned != recipe.epochs:
        warnings.warn(
            f"{folder} goes on behind epoch {done} to epoch {recipe.epochs} instead of {changes.planned}: "
            f"all schedules, of learning rates too, go on at {done / recipe.epochs:.0%} of their new length, "
            f"so the result will not equal that of {recipe.epochs} epochs from the start.",
            stacklevel=3,
        )


def check_recipe(found: dict[str, Any], recipe: Recipe, folder: Path) -> Changes:
    """Refuses to go on with another recipe than a checkpoint's, but for its devices and epochs."""
    now = comparable(to_dict(recipe))
    # Checkpoints of older versions do not say on what machine they were made.
    changed = differences({"machine": now["machine"]} | modernise(found["recipe"]), now)
    moved = [words for words in changed if words.startswith(MOVED)]
    if any(words not in moved and not words.startswith(LONGER) for words in changed):
        refused = [words for words in changed if words not in moved]
        raise ValueError(
            f"{folder} holds a run of another recipe: {list_differences(refused)}. "
            "Choose another folder with --out, or remove this one."
        )
    planned = found["recipe"].get("epochs")
    return Changes(moved, planned if is_whole(planned) else recipe.epochs)


def check_epochs(done: int, planned: int, recipe: Recipe, folder: Path) -> None:
    """Refuses to end a run where it was not meant to end and has nothing to learn any more."""
    if recipe.epochs != planned and recipe.epochs <= done:
        raise ValueError(
            f"{folder} has {done} of {planned} epochs behind it, and epochs is {recipe.epochs}: "
            f"ask for more than {done} to go on, for {planned} to leave it as planned, or choose another "
            "folder with --out."
        )


def check_pictures(found: dict[str, Any], split: Split, folder: Path) -> None:
    """Refuses to go on with other training pictures than a checkpoint was made with."""
    now = pictures_of(split)
    if changed := differences(found.get("pictures", now), now):
        raise ValueError(
            f"{folder} holds a run on other training pictures: {'; '.join(changed)}. "
            "Choose another folder with --out, or the right --data.root."
        )
