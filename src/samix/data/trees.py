"""Pictures of one's own in one tree, root/<class>/<picture>; a part of each class is split off to test on."""

from pathlib import Path

import torch
from torch import Tensor

from samix.core.seeds import fold
from samix.data.folders import ENDINGS, FolderPart, class_names, find_pictures, read_classes

SHARE = 0.2
"""The part of every class that is kept to test on."""
SEED = fold(0, "folder")
"""Not the run's: all seeds and mixups of a comparison are tested on the same pictures."""


def read_tree(root: Path, unreadable: list[Path], short: int | None = None) -> dict[str, FolderPart]:
    """The splits train and val of a tree of class folders; what cannot be read goes to `unreadable`."""
    names = find_classes(root)
    pictures, labels, _ = read_classes(root, names, short=short, unreadable=unreadable)
    train, val = split_off(labels)
    if not len(val):
        raise ValueError(
            f"{root} has {len(labels)} pictures in {len(names)} classes, one each, so that none is left to "
            "test on. Give at least one class a second picture, or make the folders train/ and val/."
        )
    return {
        part: (pictures.pick(chosen), labels[chosen], names)
        for part, chosen in (("train", train), ("val", val))
    }


def find_classes(root: Path) -> tuple[str, ...]:
    """The classes of a tree: at least two folders, and no folders of classes in them."""
    if not any(entry.is_dir() and not entry.name.startswith(".") for entry in root.iterdir()):
        found = "pictures, but" if any(p.suffix.lower() in ENDINGS for p in root.iterdir()) else ""
        raise ValueError(
            f"{root} has {found or 'no pictures and'} no class folders. Make one folder per class, "
            f"{root}/<class>/<picture>; `samix pretrain ssl-folder --data.root {root}` needs none."
        )
    names = class_names(root)
    for name in names:
        if inner := find_inner(root / name):
            raise ValueError(
                f"{root / name} has no pictures of its own but folders of them ({', '.join(inner[:3])}). If "
                f"these are the classes: --data.root {root / name}. Otherwise move their pictures up."
            )
    if len(names) == 1:
        raise ValueError(
            f"{root} has one class folder only, {names[0]!r}: nothing to tell apart. Make one folder per "
            f"class, {root}/<class>/<picture>; `samix pretrain ssl-folder --data.root {root}` needs none."
        )
    return names


def find_inner(folder: Path) -> list[str]:
    """The sub-folders that hold the pictures of a folder, where there are several and it has none itself."""
    found = find_pictures(folder)
    if any(path.parent == folder for path in found):
        return []
    inner = sorted({path.relative_to(folder).parts[0] for path in found})
    return inner if len(inner) > 1 else []


def split_off(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Positions to learn from and to test on, each sorted: about `SHARE` of every class is tested on.

    A class of two pictures or more keeps at least one of either kind, a class of one learns from it.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(SEED))
    tested = []
    for label in labels.unique().tolist():
        mine = order[labels[order] == label]
        count = 0 if len(mine) == 1 else max(1, round(SHARE * len(mine)))
        tested.append(mine[:count])
    val = torch.cat(tested).sort().values
    kept = torch.ones(len(labels), dtype=torch.bool)
    kept[val] = False
    return kept.nonzero().flatten(), val
