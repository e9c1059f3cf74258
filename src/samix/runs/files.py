"""The files of a run folder by name, and how a file is written: whole, or not at all."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CONFIG = "config.yaml"
"""The resolved recipe."""
START = "run.json"
"""Name, command and commit with which the run started."""
METRICS = "metrics.csv"
"""A row per epoch."""
CHECKPOINT = "last.ckpt"
"""Everything that a resumed run needs."""
ENCODER = "encoder.safetensors"
"""The encoder, to use elsewhere."""
MIXER = "mixer.safetensors"
"""The Mixer with the encoder that it reads."""
DESCRIPTION = "config.json"
"""What the headers of the two say, for those who read no safetensors; in `CLASSIFIER`, what timm asks for."""
CLASSIFIER = "classifier"
"""The folder of the tested classifier, as timm reads one: config.json and model.safetensors."""
CLASSIFIER_WEIGHTS = "model.safetensors"
"""The weights in that folder, under the names that timm gives them."""
EXPORT = "export"
"""The folder that `samix export` writes the Mixer and its card into."""
SAMPLES = "samples.npz"
"""Mixed test pictures over the lam range."""
RETENTION = "retention.csv"
"""Share of each object that survives mixing."""
SUMMARY = "summary.json"
"""The run in numbers; its presence says that the run is finished."""
LOCK = ".lock"
"""Held by the process that trains in the folder."""


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
        raise OSError(
            f"could not write {path}: {error}. The previous file, if any, is untouched. "
            "Check free space and permissions, then start the same command again: it resumes."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically."""

    def write(temporary: Path) -> None:
        temporary.write_text(text)

    write_atomically(path, write)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file of bytes atomically."""

    def write(temporary: Path) -> None:
        temporary.write_bytes(data)

    write_atomically(path, write)
