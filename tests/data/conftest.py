"""Random pictures, and small folders of them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor


@pytest.fixture(scope="session")
def random_pictures():
    """A maker of 8-bit pictures: `random_pictures(count, height, width)`."""

    def make(count: int, height: int, width: int) -> Tensor:
        return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8)

    return make


@pytest.fixture
def write(tmp_path) -> Callable[..., Path]:
    """Writes a flat picture to a path below the test's folder."""

    def write(path: str, value: int = 100, mode: str = "RGB", size: tuple[int, int] = (10, 10)) -> Path:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((*size, 3), value, dtype=np.uint8)).convert(mode).save(target)
        return target

    return write


@pytest.fixture
def folder(write, tmp_path) -> Path:
    """Two classes, two training pictures and one test picture each."""
    for label, name in enumerate(("cat", "dog")):
        for number in range(2):
            write(f"train/{name}/{number}.png", 100 * label + 10 * number)
        write(f"val/{name}/x.png", 100 * label + 50)
    return tmp_path


@pytest.fixture
def tiny_imagenet(write, tmp_path) -> Path:
    """Tiny-ImageNet's official layout with one training picture of two classes and three test pictures."""
    root = tmp_path / "tiny-imagenet-200"
    for label, name in enumerate(("n01", "n02")):
        write(f"{root.name}/train/{name}/images/{name}_0.JPEG", 100 * label, size=(64, 64))
    for number, label in enumerate((1, 0, 1)):
        write(f"{root.name}/val/images/val_{number}.JPEG", 100 * label, size=(64, 64))
    lines = [f"val_{number}.JPEG\tn0{label + 1}\t0\t0\t63\t63" for number, label in enumerate((1, 0, 1))]
    (root / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    return root
