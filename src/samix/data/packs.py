"""Packs: a whole dataset in one .npz file of JPEG bytes, decoded by a pool of threads.

For each split S (train, val, or one of them): `S_bytes` (all files end to end), `S_offsets` [n + 1],
`S_labels` [n]; `class_words` or `class_names` for the classes.
"""

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torchvision.transforms import v2

from samix.core.archives import read_arrays
from samix.data.memory import read_all
from samix.data.places import search_places

UNREADABLE = (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError)
"""What Pillow raises for pictures that it cannot, or should not, read."""


def stacked(pictures: list[Tensor]) -> Tensor | list[Tensor]:
    """Pictures [3, H, W] as one tensor [N, 3, H, W] where all sizes agree."""
    return torch.stack(pictures) if len({picture.shape for picture in pictures}) == 1 else pictures


def why_unreadable(error: Exception) -> str:
    """Why a picture cannot be read; Pillow would name the bytes in memory instead of the format."""
    return "it is no picture in a known format" if isinstance(error, UnidentifiedImageError) else str(error)


class Packed(Sequence[Tensor]):
    """Encoded pictures, so that only those that are wanted need be decoded."""

    def __init__(self, files: list[bytes], source: Path) -> None:
        self.files, self.source = files, source

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> Tensor:  # type: ignore[override]
        return self.read(i)

    def read(self, i: int) -> Tensor:
        """One picture; one that cannot be read is refused."""
        try:
            return decode(self.files[i])
        except UNREADABLE as error:
            raise ValueError(
                f"cannot read a picture of {self.source}: {why_unreadable(error)}. Copy it again."
            ) from error

    def pick(self, chosen: Tensor) -> "Packed":
        """Some of them."""
        return Packed([self.files[i] for i in chosen.tolist()], self.source)

    def decode(self) -> Tensor | list[Tensor]:
        """Decodes all of them: uint8 [N, 3, H, W], or a list of [3, H, W] where sizes differ."""
        return read_all(self.read, len(self))


SPLITS = ("train", "val")
Part = tuple[Packed, Tensor, tuple[str, ...]]
"""Pictures, labels [N], class names."""


def find_root(root: str | None, name: str, entries: tuple[str, ...], source: str) -> Path:
    """The first of the given root, $SAMIX_DATA and ./data with one of `entries`; `source`: what to get."""
    places = search_places(root)
    for place in places:
        if any((place / entry).exists() for entry in entries):
            return place
    raise FileNotFoundError(
        f"dataset '{name}' not found: looked for {' or '.join(entries)} in "
        f"{', '.join(str(place.absolute()) for place in places)}. "
        f"Get {source} and unpack it there, or say where it is with --data.root or the variable SAMIX_DATA."
    )


def decode(data: bytes, short: int | None = None) -> Tensor:
    """One encoded picture as uint8 [3, H, W], upright as its EXIF says; greyscale and alpha are converted.

    A picture whose shorter side exceeds `short` is reduced to it; JPEG files are then read at a fraction of
    their size, which takes a fraction of the time.
    """
    with Image.open(io.BytesIO(data)) as stored:
        if short is not None:
            stored.draft(None, (short, short))
        image = ImageOps.exif_transpose(stored)
        if image.mode == "F":
            raise ValueError("its values are fractions of unknown range; save it with 8 or 16 bits")
        if image.mode.startswith("I"):  # `convert` would clip what exceeds 8 bits
            grey = to_8_bits(np.asarray(image), deep=image.mode != "I")
            whole = torch.from_numpy(grey).expand(3, -1, -1).contiguous()
        else:
            whole = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1).contiguous()
    return whole if short is None else reduce(whole, short)


def reduce(picture: Tensor, short: int) -> Tensor:
    """A picture [3, H, W] whose shorter side is at most `short`, in its own proportions."""
    height, width = picture.shape[1:]
    if min(height, width) <= short:
        return picture
    share = short / min(height, width)
    size = [max(short, round(height * share)), max(short, round(width * share))]
    return v2.functional.resize(picture, size, antialias=True)


def to_8_bits(grey: np.ndarray, *, deep: bool) -> np.ndarray:
    """Whole numbers as uint8: of 16 bits where `deep`, else of 8 or 16 bits as their maximum tells."""
    low, high = int(grey.min()), int(grey.max())
    if low < 0 or high > 65535:
        raise ValueError(f"its values, {low} to {high}, exceed 16 bits; save it with 8 or 16 bits")
    return (grey // 257 if deep or high > 255 else grey).astype(np.uint8)


def read_pack(path: Path) -> dict[str, Part]:
    """The splits of a pack that it has: train, val or both."""
    try:
        wanted = [f"{part}_{what}" for part in SPLITS for what in ("bytes", "offsets", "labels")]
        pack = read_arrays(path, ["class_words", "class_names", *wanted])
        found = [part for part in SPLITS if f"{part}_bytes" in pack]
        if not found:
            raise ValueError("it has neither train_bytes nor val_bytes")
        words = _read_words(pack)
        return {part: _read_part(pack, part, words, path) for part in found}
    except ValueError as error:
        raise ValueError(f"cannot read the pack {path}: {error}. Copy it again, or remove it.") from error


def read_names(path: Path, part: str) -> list[str]:
    """The names that the files of a split had before they were packed."""
    names = read_arrays(path, [f"{part}_names"]).get(f"{part}_names")
    if names is None or names.ndim != 1:
        raise ValueError(f"the pack {path} has no {part}_names, by which its pictures are told apart.")
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


def join_splits(parts: Mapping[str, Part]) -> Packed:
    """The pictures of all splits, one after the other."""
    packed = [pictures for pictures, _, _ in parts.values()]
    return Packed([file for pictures in packed for file in pictures.files], packed[0].source)


def _read_words(pack: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    words = pack.get("class_words", pack.get("class_names"))
    if words is None or words.ndim != 1 or not len(words):
        raise ValueError("it has no class_words or class_names, a list with at least one name")
    return tuple(str(word) for word in words)


def _read_part(pack: Mapping[str, np.ndarray], part: str, words: tuple[str, ...], path: Path) -> Part:
    for name in (f"{part}_offsets", f"{part}_labels"):
        if name not in pack:
            raise ValueError(f"it has no {name}")
    data, offsets, labels = (pack[f"{part}_{name}"] for name in ("bytes", "offsets", "labels"))
    if data.ndim != 1 or data.dtype != np.uint8:
        raise ValueError(f"{part}_bytes must be uint8 in a row, got {data.dtype} of shape {list(data.shape)}")
    _check_offsets(offsets, f"{part}_offsets", len(data))
    files = [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
    if labels.shape != (len(files),) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"{part}_labels must be one class index for each of the {len(files)} pictures, "
            f"got {labels.dtype} of shape {list(labels.shape)}"
        )
    low, high = int(labels.min()), int(labels.max())
    if not 0 <= low <= high < len(words):
        raise ValueError(
            f"{part}_labels must lie in [0, {len(words)}), the number of classes, got {low} to {high}"
        )
    return Packed(files, path), torch.from_numpy(labels.astype(np.int64)), words


def _check_offsets(offsets: np.ndarray, name: str, size: int) -> None:
    if offsets.ndim != 1 or not np.issubdtype(offsets.dtype, np.integer) or len(offsets) < 2:
        raise ValueError(
            f"{name} must be whole numbers in a row, two at least, got {offsets.dtype} of shape "
            f"{list(offsets.shape)}"
        )
    if offsets[0] < 0 or offsets[-1] > size or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{name} must rise from 0 to the {size} bytes")
