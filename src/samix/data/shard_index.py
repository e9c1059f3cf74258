"""The index of a folder of shards: where every picture begins, how long it is, and its label.

It is made once, by reading the headers of all members and no picture, and kept beside the shards
(`.samix-train.npz`), or where one may not write there in ~/.cache/samix. Shards of another size or date make
it anew. Tars may come from anybody: only regular members count, nothing is unpacked, sizes are limited.
"""

import contextlib
import hashlib
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from samix.core.archives import read_arrays
from samix.data.folders import ENDINGS, LARGEST
from samix.data.shards import Shards

LABELS = (".cls", ".json")
"""Endings of labels; the first that a sample has counts."""
LONGEST_LABEL = 2**20
"""Bytes of a label's file."""
MOST_CLASSES = 2**20
BLOCK = 512
"""Bytes of a tar's header; an empty one ends the file."""
WORDS = {"train": {"train", "training"}, "val": {"val", "valid", "validation"}, "test": {"test"}}
"""Words in a shard's name, or its folder's, that say which split it belongs to."""
NAMES = "classes.txt"
"""A line per class, beside the shards; without it classes are called by their numbers."""
AGAIN = "Copy it again."

ShardPart = tuple[Shards, Tensor, tuple[str, ...]]
"""Pictures, labels [N], class names."""


class Index(NamedTuple):
    """A line per picture, in the order of the shards and of the pictures in them; arrays [N]."""

    shard: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    label: np.ndarray


class Member(NamedTuple):
    """A regular file in a tar."""

    name: str
    offset: int
    length: int


def read_shards(root: Path, *, test: str = "val", short: int | None = None) -> dict[str, ShardPart]:
    """The splits train and val of a folder with shards; val: those of `test`, else of the other one."""
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not a folder. It should hold train-000000.tar, ...")
    found = find_shards(root)
    tested = next((part for part in (test, "val", "test") if found[part]), "val")
    for part in ("train", tested):
        if not found[part]:
            raise FileNotFoundError(
                f"{root} has no shard of the split '{part}'. Expected names such as train-000000.tar and "
                "val-000000.tar, in the folder itself or one below."
            )
    indices = {"train": load_index(root, "train", found["train"])}
    indices["val"] = load_index(root, tested, found[tested])
    names = read_class_names(root, int(indices["train"].label.max()) + 1)
    if (most := int(indices["val"].label.max())) >= len(names):
        raise ValueError(f"{tested} in {root} has the label {most}, train only {len(names)} classes.")
    return {
        part: (
            Shards(found["train" if part == "train" else tested], places(index), short),
            torch.from_numpy(index.label),
            names,
        )
        for part, index in indices.items()
    }


def places(index: Index) -> Tensor:
    """Where the pictures are, as `Shards` takes it."""
    return torch.from_numpy(np.stack([index.shard, index.offset, index.length], axis=1))


def find_shards(root: Path) -> dict[str, list[Path]]:
    """The tars of every split, sorted: those whose name, or whose folder's below the root, has its word."""
    tars = sorted(path for path in [*root.glob("*.tar"), *root.glob("*/*.tar")] if path.is_file())
    words = {path: set(re.split("[^a-z]+", str(path.relative_to(root)).lower())) for path in tars}
    return {part: [path for path in tars if words[path] & WORDS[part]] for part in WORDS}


def read_class_names(root: Path, classes: int) -> tuple[str, ...]:
    """The lines of classes.txt if there is one, else the numbers of the classes."""
    path = root / NAMES
    if not path.is_file():
        return tuple(str(label) for label in range(classes))
    names = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    if len(names) < classes:
        raise ValueError(f"{path} names {len(names)} classes, but there are labels up to {classes - 1}.")
    return names


# The index of one tar.


def index_tar(path: Path) -> list[tuple[int, int, int]]:
    """First byte, number of bytes and label of every picture, in their order; a damaged tar is named."""
    try:
        members = list(list_members(path))
        with path.open("rb") as file:
            return [(member.offset, member.length, label) for member, label in pair_up(members, file)]
    except (tarfile.TarError, OSError, ValueError, EOFError, OverflowError) as error:
        raise ValueError(f"cannot read the shard {path}: {error}. {AGAIN}") from error


def list_members(path: Path) -> Iterator[Member]:
    """The regular members of a tar, whose end must be there."""
    with tarfile.open(path, "r:") as tar:
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]  # it would keep them all
            if member.size < 0:
                raise ValueError(f"its member {member.name!r} has {member.size} bytes")
            if member.isreg() and not member.issparse():
                yield Member(member.name, member.offset_data, member.size)
        # tarfile ends without a word at a header that it does not understand.
        end = tar.offset
    with path.open("rb") as file:
        file.seek(end)
        if file.read(BLOCK) != bytes(BLOCK):
            raise ValueError(f"it is damaged or cut off at byte {end}")


def pair_up(members: list[Member], file: Any) -> Iterator[tuple[Member, int]]:
    """Every picture with its label; `file` is the open tar."""
    pictures: dict[str, Member] = {}
    labels: dict[str, dict[str, Member]] = {ending: {} for ending in LABELS}
    for member in members:
        key, ending = split_name(member.name)
        kind = pictures if ending in ENDINGS else labels.get(ending)
        if kind is None:
            continue
        if key in kind:
            raise ValueError(f"it has two members {member.name!r}")
        kind[key] = member
    if not pictures:
        raise ValueError(f"it has no picture ({', '.join(sorted(ENDINGS))})")
    for key, picture in pictures.items():
        if not 0 < picture.length <= LARGEST:
            raise ValueError(f"its member {picture.name!r} has {picture.length} bytes")
        named = next((labels[ending][key] for ending in LABELS if key in labels[ending]), None)
        if named is None:
            raise ValueError(f"its picture {picture.name!r} has no label ({' or '.join(LABELS)})")
        yield picture, read_label(named, file)


def split_name(name: str) -> tuple[str, str]:
    """A member's sample and ending: 'a/b.c.jpg' is the ending '.c.jpg' of the sample 'a/b'."""
    folder, slash, file = name.rpartition("/")
    stem, dot, ending = file.partition(".")
    return folder + slash + stem, (dot + ending).lower()


def read_label(member: Member, file: Any) -> int:
    """The whole number of a `.cls`, or under "label" of a `.json`."""
    if member.length > LONGEST_LABEL:
        raise ValueError(f"its member {member.name!r} has {member.length} bytes, too many for a label")
    file.seek(member.offset)
    text = file.read(member.length)
    try:
        label = int(text) if member.name.lower().endswith(".cls") else json.loads(text)["label"]
    except (ValueError, KeyError, TypeError, RecursionError):
        label = None
    if type(label) is not int or not 0 <= label < MOST_CLASSES:
        raise ValueError(f"its member {member.name!r} is no label, a whole number from 0 on: {text[:40]!r}")
    return label


# The index of a folder, kept in a file.


def make_index(tars: list[Path], tell: Callable[[Path], None] = lambda path: None) -> Index:
    """The index of all tars; `tell` hears of each that is done."""
    parts = []
    for number, tar in enumerate(tars):
        rows = np.array(index_tar(tar), dtype=np.int64)
        parts.append(np.concatenate([np.full((len(rows), 1), number), rows], axis=1))
        tell(tar)
    return Index(*np.ascontiguousarray(np.concatenate(parts).T))


def load_index(
    root: Path, part: str, tars: list[Path], tell: Callable[[Path], None] = lambda path: None
) -> Index:
    """The index of a split: the one that is kept if it belongs to these tars as they are, or a new one."""
    known = fingerprint(root, tars)
    for kept in kept_files(root, part):
        if (index := read_index(kept, known, tars)) is not None:
            return index
    index = make_index(tars, tell)
    for kept in kept_files(root, part):
        with contextlib.suppress(OSError):  # a folder that one may not write in
            write_index(kept, index, known)
            break
    return index


def kept_files(root: Path, part: str) -> tuple[Path, Path]:
    """Where the index of a split may be: beside the shards, or in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    return root / f".samix-{part}.npz", cache / "samix" / f"shards-{name}-{part}.npz"


def fingerprint(root: Path, tars: list[Path]) -> np.ndarray:
    """What changes whenever a tar does: digest of all names, sizes and dates, as bytes."""
    states = [(str(tar.relative_to(root)), tar.stat().st_size, tar.stat().st_mtime_ns) for tar in tars]
    return np.frombuffer(hashlib.sha256(repr(states).encode()).digest(), dtype=np.uint8)


def read_index(path: Path, known: np.ndarray, tars: list[Path]) -> Index | None:
    """The index in a file, if it is one of these tars."""
    try:
        arrays = read_arrays(path)
    except (ValueError, OSError):
        return None
    if not {"fingerprint", *Index._fields} <= arrays.keys():
        return None
    index = Index(*(arrays[name] for name in Index._fields))
    return index if np.array_equal(arrays["fingerprint"], known) and is_sound(index, tars) else None


def is_sound(index: Index, tars: list[Path]) -> bool:
    """Whether columns of a file are an index: it may come from anybody, as the tars may."""
    if any(c.dtype != np.int64 or c.ndim != 1 or not len(c) or len(c) != len(index[0]) for c in index):
        return False
    shard, offset, length, label = index
    if shard.min() < 0 or shard.max() >= len(tars) or label.min() < 0 or label.max() >= MOST_CLASSES:
        return False
    ends = np.array([tar.stat().st_size for tar in tars])[shard]
    return bool(((offset >= 0) & (length > 0) & (length <= LARGEST) & (offset <= ends - length)).all())


def write_index(path: Path, index: Index, known: np.ndarray) -> None:
    """Writes a new file first and renames it: processes that start together may all write it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            np.savez(file, fingerprint=known, **index._asdict())
        os.chmod(name, 0o644)  # others may read the shards, so why not their index
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
