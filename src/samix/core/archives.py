"""Arrays by name out of .npz files that may come from anybody."""

import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

SLACK = 2**30
"""Bytes that the arrays of a file may take beyond `TIMES` what it takes itself: pictures hardly shrink."""
TIMES = 4
BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, ValueError, TypeError, NotImplementedError,
    OverflowError, MemoryError, SyntaxError, tokenize.TokenError,
)  # fmt: skip
"""What damaged files, and files of other programs, have zipfile and NumPy raise."""


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of these names that the file has (None: all); what is no such file is a ValueError."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file.")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > SLACK + TIMES * path.stat().st_size:
            raise ValueError(f"its arrays would take {size} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            wanted = arrays.files if names is None else [name for name in names if name in arrays.files]
            found = {name: arrays[name] for name in wanted}
        if broken := [name for name, values in found.items() if not isinstance(values, np.ndarray)]:
            raise ValueError(f"{broken[0]} is no array")
        return found
    except BROKEN as error:
        raise ValueError(str(error) or type(error).__name__) from error
