"""STL-10: 5,000 labelled pictures to learn from, 8,000 to test on, 100,000 without labels, at 96 x 96.

The binary files hold bytes only, a picture's columns after one another. They are mapped into memory and not
read: loading takes no time, and all processes of a machine share what was read.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from samix.data.places import Layout

SIDE = 96
CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
"""In the order of the labels 1 to 10."""
FILES = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin")
LAYOUT = Layout(
    name="stl10",
    folders=("stl10_binary",),
    files=FILES,
    source="stl10_binary.tar.gz from cs.stanford.edu/~acoates/stl10",
)
UNLABELLED = LAYOUT._replace(name="stl10-unlabelled", files=(*FILES, "unlabeled_X.bin"))

Stl10Part = tuple[Tensor, Tensor, tuple[str, ...]]
"""Pictures [N, 3, 96, 96], labels [N], class names."""


def read_stl10(root: Path) -> dict[str, Stl10Part]:
    """The labelled pictures, train and val. The folds of fold_indices.txt are not used: all 5,000 count."""
    parts: dict[str, Stl10Part] = {}
    for part, name in (("train", "train"), ("val", "test")):
        pictures, labels = map_pictures(root / f"{name}_X.bin"), read_labels(root / f"{name}_y.bin")
        if len(pictures) != len(labels):
            raise ValueError(
                f"{root / name}_X.bin has {len(pictures)} pictures, {name}_y.bin {len(labels)} labels. "
                "Unpack them again."
            )
        parts[part] = (pictures, labels, CLASSES)
    return parts


def read_unlabelled(root: Path) -> Tensor:
    """The pictures without labels [N, 3, 96, 96]."""
    return map_pictures(root / "unlabeled_X.bin")


def map_pictures(path: Path) -> Tensor:
    """Pictures [N, 3, 96, 96] of a binary file, read from the disk where they are looked at."""
    size, each = path.stat().st_size, 3 * SIDE * SIDE
    if not size or size % each:
        raise ValueError(f"{path} has {size} bytes, no multiple of a picture's {each}. Unpack it again.")
    # Mode c: torch wants memory that may be written; what is written stays in memory.
    whole = torch.from_numpy(np.memmap(path, dtype=np.uint8, mode="c"))
    return whole.view(-1, 3, SIDE, SIDE).transpose(2, 3)


def read_labels(path: Path) -> Tensor:
    """Labels from 0 on, as elsewhere; the file counts from 1."""
    labels = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
    if not len(labels) or not 1 <= int(labels.min()) <= int(labels.max()) <= len(CLASSES):
        raise ValueError(f"{path} should hold a label from 1 to {len(CLASSES)} per byte. Unpack it again.")
    return labels - 1
