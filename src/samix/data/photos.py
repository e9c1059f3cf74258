"""Sets of a few hundred photographs per class and less, out of packs: Flowers-102, Oxford Pets, Caltech-101.

Settings are chosen on validation pictures, which are part of what the sets offer for training; the official
test pictures are for the last word (`data.test`, docs/few_photos.md).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from samix.core.shapes import Labels
from samix.data.packs import Part, read_names, read_pack

Chosen: TypeAlias = Callable[[Labels], Tensor | None]
"""Labels of the pictures that one may learn from -> positions of those that are wanted; None: all."""
Tested: TypeAlias = Literal["val", "test"]
TRAIN_LIST = "flowers102_train.txt"


def read_flowers(pack: Path, test: Tested, chosen: Chosen) -> dict[str, Part]:
    """Official splits of 10 pictures per class each to train on and to validate on, and 6,149 to test on.

    The pack holds the first two as one; the list beside it names the files of the first.
    """
    parts, names, listed = read_pack(pack), read_names(pack, "train"), pack.with_name(TRAIN_LIST)
    if not listed.is_file():
        raise FileNotFoundError(f"{listed} is missing: it names the official training pictures of {pack}.")
    wanted = set(listed.read_text().split())
    if unknown := sorted(wanted.difference(names)):
        raise ValueError(f"{listed} names {unknown[0]}, which {pack} does not hold. Copy both again.")
    mine = torch.tensor([name in wanted for name in names])
    train, val = (take(parts["train"], chosen.nonzero().flatten()) for chosen in (mine, ~mine))
    return {"train": train, "val": parts["val"] if test == "test" else val}


def read_pets(pack: Path, test: Tested, chosen: Chosen) -> dict[str, Part]:
    """Of the official trainval the chosen ones to train on, the rest to validate on; 3,669 to test on."""
    parts = read_pack(pack)
    whole = parts["train"]
    positions = chosen(whole[1])
    if test == "test":
        rest = parts["val"]
    elif positions is None or len(positions) == len(whole[1]):
        raise ValueError(
            f"data.train_pictures leaves none of the {len(whole[1])} pictures to validate on: take fewer, "
            "such as --data.train_pictures 555, or --data.test test."
        )
    else:
        kept = torch.ones(len(whole[1]), dtype=torch.bool)
        kept[positions] = False
        rest = take(whole, kept.nonzero().flatten())
    return {"train": whole if positions is None else take(whole, positions), "val": rest}


def read_caltech(pack: Path, test: Tested, chosen: Chosen) -> dict[str, Any]:
    """Train and val as they are."""
    return read_pack(pack)


def take(part: Part, positions: Tensor) -> Part:
    """Some pictures of a split."""
    pictures, labels, names = part
    return pictures.pick(positions), labels[positions], names
