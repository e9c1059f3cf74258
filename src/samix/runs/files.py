"""The files of a run folder by name, and how a file is written: whole or not at all, never through a link."""

import os
import re
import secrets
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
AVERAGED = "classifier-average"
"""The folder of the average of its weights, where the recipe asks for one."""
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
KNN, LINEAR = "knn.json", "linear.json"
"""What `samix knn` and `samix linear` found."""
LOCK = ".lock"
"""Held by the process that trains in the folder."""


TEMPORARY = re.compile(r".+\.[0-9a-f]{16}\.tmp")
"""Names of files that are being written."""


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Writes to a temporary file beside `path`, then renames: readers see the old file or the new one.

    The temporary file is new and nobody can guess its name, so no link leads what is written elsewhere; a
    link under the name of `path` is replaced by the file.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        temporary.touch(exist_ok=False)
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


def remove_leftovers(folder: Path) -> None:
    """Removes what killed processes did not finish writing; for a folder that nobody else writes in."""
    for path in folder.iterdir():
        if TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink()


def own_folder(run: Path, name: str) -> Path:
    """A folder inside a run folder, made if it is missing; a link there leads elsewhere and is refused."""
    place = run / name
    if place.is_symlink():
        raise ValueError(f"{place} is a link, and a run writes in its own folder only. Remove the link.")
    place.mkdir(parents=True, exist_ok=True)
    return place
