"""Snapshots of a run, and going on from one: the same recipe or a clear refusal."""

import warnings
from pathlib import Path
from typing import Any

from lightning_fabric.plugins.precision import Precision
from torch import nn, optim

from samix.data.datasets import Split
from samix.data.loaders import TrainPlan
from samix.distributed import rank
from samix.engine.checkpoint import load_checkpoint, restore
from samix.engine.config import Training, to_dict

MOST = 5
"""So many differences are listed."""
LEARNED = ("precision", "accumulate", "devices", "nodes")
"""What of the machine changes what is learned."""
MOVED = ("machine.devices:", "machine.nodes:")
"""In these a run may go on otherwise than it began, on another machine, but is told so."""


def snapshot(
    recipe: Training,
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
        "recipe": comparable(recipe),
        "pictures": pictures_of(split),
    }


def pictures_of(split: Split) -> dict[str, Any]:
    """What tells one set of training pictures from another, wherever it lies."""
    return {"count": len(split.train.labels), "classes": list(split.train.classes)}


def resume(
    recipe: Training,
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
            f"{folder} goes on with other devices ({listed(moved)}), which draw other pairs and norm other "
            "shares of a batch: the result will not be bit-equal to that of the same devices.",
            stacklevel=2,
        )
    return found["step"]


def check_recipe(found: dict[str, Any], recipe: Training, folder: Path) -> list[str]:
    """Refuses to go on with another recipe than a checkpoint's; returns in which devices the two differ."""
    now = comparable(recipe)
    # Checkpoints of older versions do not say on what machine they were made.
    changed = differences({"machine": now["machine"]} | found["recipe"], now)
    moved = [words for words in changed if words.startswith(MOVED)]
    if refused := [words for words in changed if words not in moved]:
        raise ValueError(
            f"{folder} holds a run of another recipe: {listed(refused)}. "
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


def comparable(recipe: Training) -> dict[str, Any]:
    """The recipe without what changes nothing that is learned: threads, loading, how often it tests."""
    values = to_dict(recipe)
    for name in ("eval_every", "save_every"):
        values.pop(name)
    values["machine"] = {name: values["machine"][name] for name in LEARNED}
    for name in ("root", "workers"):
        values["data"].pop(name)
    return values


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """Fields in which two recipes differ, as 'epochs: there 100, here 50'."""
    if old.get("name") != new.get("name"):  # of another kind: its settings say nothing
        return [f"{prefix}name: there {old.get('name', 'unset')}, here {new.get('name', 'unset')}"]
    found = []
    for key in sorted(set(old) | set(new)):
        a, b = old.get(key, "unset"), new.get(key, "unset")
        if isinstance(a, dict) and isinstance(b, dict):
            found += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key}: there {a}, here {b}")
    return found


def listed(changed: list[str]) -> str:
    """The first differences in one line, and how many more there are."""
    more = f" and {len(changed) - MOST} more" if len(changed) > MOST else ""
    return "; ".join(changed[:MOST]) + more
