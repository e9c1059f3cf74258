"""Files that are whole or not there: atomic writes, checkpoints, exported weights."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

CHECKPOINT = "last.ckpt"


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Writes to a temporary file beside `path`, then renames: readers see the old file or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        write(temporary)
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:
        # torch reports a full disk as a RuntimeError of its archive writer.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(
            f"could not write {path}: {error}. The previous file, if any, is untouched. "
            "Check free space and permissions, then start the same command again: it resumes."
        ) from error


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically."""
    write_atomically(path, lambda temporary: _write_text(temporary, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text)


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


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
        missing = {"step", "model", "optimizer", "recipe"} - set(found)
    except Exception as error:
        reason = f"{type(error).__name__}, {path.stat().st_size} bytes"
        raise ValueError(
            f"{path} is not a readable checkpoint ({reason}). Remove it to start again."
        ) from error
    if missing:
        raise ValueError(f"{path} is no checkpoint of a run: it lacks {', '.join(sorted(missing))}.")
    return found


def restore(model: nn.Module, weights: dict[str, Tensor], folder: Path) -> None:
    """Loads a checkpoint's weights; a model of another shape is refused in one sentence."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip()
        raise ValueError(
            f"the checkpoint of {folder} is of another network or other classes than asked for now: {first}"
        ) from error


def save_weights(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Weights as safetensors, with a JSON description in the header."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data = save(plain, metadata={"samix": json.dumps(metadata)})
    write_atomically(path, lambda temporary: _write_bytes(temporary, data))


def prefixed(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """A module's state with a prefix before every name."""
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}
