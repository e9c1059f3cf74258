"""The checkpoint of a run: everything for exact resume, in one file that is read as data, never as code."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from samix.runs import schema
from samix.runs.files import CHECKPOINT, write_atomically


def save_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """Everything for exact resume, in one file."""
    write_atomically(folder / CHECKPOINT, lambda temporary: torch.save(state, temporary))


def load_checkpoint(folder: Path) -> dict[str, Any] | None:
    """The last checkpoint as plain data (no code is run), or None where there is none."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = f"{type(error).__name__}, {path.stat().st_size} bytes"
        raise ValueError(
            f"{path} is not a readable checkpoint ({reason}). Remove it to start again."
        ) from error
    schema.check(path, found, schema.CHECKPOINT, needed=("step", "model", "optimizer", "recipe"))
    if "pictures" in found:
        schema.check(f"{path}: pictures", found["pictures"], schema.PICTURES, needed=("count", "classes"))
    return found


def restore(model: nn.Module, weights: dict[str, Tensor], folder: Path) -> None:
    """Loads a checkpoint's weights; a model of another shape is refused in one sentence."""
    for name, value in weights.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(
                f"the checkpoint of {folder} has no tensor under {name!r}. Remove it to start again."
            )
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip()
        raise ValueError(
            f"the checkpoint of {folder} is of another network or other classes than asked for now: {first}"
        ) from error
