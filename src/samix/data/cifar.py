"""CIFAR-10 and CIFAR-100 as their authors publish them, read by torchvision."""

from pathlib import Path

import torch
from torch import Tensor

FOLDERS = {10: "cifar-10-batches-py", 100: "cifar-100-python"}

CifarPart = tuple[Tensor, Tensor, tuple[str, ...]]
"""Pictures [N, 3, 32, 32], labels [N], class names."""


def cifar_source(classes: int) -> str:
    """The archive to unpack, and the page that offers it."""
    return f"cifar-{classes}-python.tar.gz from www.cs.toronto.edu/~kriz/cifar.html"


def read_cifar(root: Path, classes: int) -> dict[str, CifarPart]:
    """The splits train and val of the unpacked archive in `root`; a damaged one is refused."""
    from torchvision import datasets

    reader = {10: datasets.CIFAR10, 100: datasets.CIFAR100}[classes]
    try:
        sets = {"train": reader(str(root), train=True), "val": reader(str(root), train=False)}
    except RuntimeError as error:  # it would suggest an argument of torchvision's that you cannot give
        raise ValueError(
            f"{root / FOLDERS[classes]} is incomplete or damaged. Remove it, get {cifar_source(classes)} "
            f"and unpack it in {root}."
        ) from error
    return {
        part: (torch.from_numpy(s.data).permute(0, 3, 1, 2), torch.tensor(s.targets), tuple(s.classes))
        for part, s in sets.items()
    }
