"""Shards: a large set as WebDataset's tar files, every picture of which can be read at once by its place.

A sample is the members of one tar that share a name up to the first dot: a picture (`x.jpg`) and its label
(`x.cls` with a whole number, or `x.json` with "label"). The index of all of them, kept in a file, says where
each picture begins; so batches stay what they are for other sets, a function of seed and step, whichever
process or worker makes them (`shard_index`).
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from PIL import Image
from torch import Tensor

from samix.data.memory import bytes_decoded, read_all
from samix.data.packs import UNREADABLE, decode, why_unreadable

SMALL = 2 * 2**30
"""Pictures that take at most this many bytes once decoded stay in memory."""
OPENED = 256
"""Shards that a process keeps open."""


class Opened:
    """A file of which any part may be read at any time, also by several threads and after a fork."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from `offset` on; fewer than `length` where the file ends."""
        return os.pread(self.descriptor, length, offset)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # `os` may be gone at the very end
        if hasattr(self, "descriptor"):
            close(self.descriptor)


open_file = lru_cache(maxsize=OPENED)(Opened)
"""The files read last stay open; one is closed when nobody reads it any more."""


# Not Sequence[Tensor]: the type checker of the tests would decode a picture wherever the set is passed on.
class Shards(Sequence):
    """Decodes a picture of a shard each time it is asked for."""

    def __init__(self, tars: list[Path], places: Tensor, short: int | None = None) -> None:
        """`places` [N, 3]: shard, first byte and number of bytes of every picture."""
        self.tars, self.places, self.short = tars, places, short

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Tensor:  # type: ignore[override]
        return self.read(index)

    def read(self, index: int) -> Tensor:
        """One picture; one that cannot be read is refused by the name of its shard."""
        try:
            return decode(self.encoded(index), self.short)
        except UNREADABLE as error:
            raise self.complaint(index, error) from error

    def encoded(self, index: int) -> bytes:
        """A picture's file."""
        shard, offset, length = self.places[index].tolist()
        data = open_file(self.tars[shard]).read(offset, length)
        if len(data) < length:
            raise OSError("the shard ends in the middle of it")
        return data

    def size(self, index: int) -> tuple[int, int]:
        """Width and height from the picture's header."""
        try:
            with Image.open(BytesIO(self.encoded(index))) as image:
                return image.size
        except UNREADABLE as error:
            raise self.complaint(index, error) from error

    def complaint(self, index: int, error: Exception) -> ValueError:
        """What is wrong with a picture, and where it is."""
        shard, offset, _ = self.places[index].tolist()
        return ValueError(
            f"cannot read the picture at byte {offset} of {self.tars[shard]}: {why_unreadable(error)}. "
            "Copy the shard again."
        )

    def pick(self, chosen: Tensor) -> "Shards":
        """Some of them."""
        return Shards(self.tars, self.places[chosen], self.short)

    def decode(self) -> "Tensor | list[Tensor] | Shards":
        """Decodes all if they fit into `SMALL` bytes, judged by a few of them; else stays as it is."""
        fits = bytes_decoded(self.size, len(self), self.short) <= SMALL
        return read_all(self.read, len(self)) if fits else self
