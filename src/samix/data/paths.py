"""Many paths in little memory: a million of them as `Path` objects would take half a gigabyte."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor


class Paths(Sequence[Path]):
    """Paths, all in one row of bytes; one becomes a `Path` when it is asked for."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        parts = [os.fsencode(path) for path in paths]
        self.ends = np.cumsum([0, *map(len, parts)])
        self.text = b"".join(parts)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: int) -> Path:  # type: ignore[override]
        index = range(len(self))[index]
        return Path(os.fsdecode(self.text[self.ends[index] : self.ends[index + 1]]))

    def pick(self, chosen: Tensor) -> "Paths":
        """Some of them."""
        return Paths(self[i] for i in chosen.tolist())
