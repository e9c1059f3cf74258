"""CIFAR's published folders: what is read, and what to do about a damaged one."""

import hashlib
import pickle

import samix  # noqa: F401  (prepares torchvision)

# isort: split
import numpy as np
import pytest
from torchvision import datasets

from samix.data.cifar import FOLDERS
from samix.data.datasets import Data, load_data

READERS = {10: datasets.CIFAR10, 100: datasets.CIFAR100}


@pytest.fixture
def write_cifar(tmp_path, monkeypatch):
    """Writes a CIFAR of `classes` classes with a few pictures and lets torchvision take its checksums."""

    def save(folder, name, content) -> list[str]:
        data = pickle.dumps(content)
        (folder / name).write_bytes(data)
        return [name, hashlib.md5(data).hexdigest()]

    def write(classes: int, train: int, test: int):
        folder, reader = tmp_path / FOLDERS[classes], READERS[classes]
        folder.mkdir()
        key = "labels" if classes == 10 else "fine_labels"
        for part, count in (("train", train), ("test", test)):
            pixels = np.arange(count, dtype=np.uint8)[:, None].repeat(3072, axis=1)
            content = {"data": pixels, key: [n % classes for n in range(count)]}
            monkeypatch.setattr(reader, f"{part}_list", [save(folder, part, content)])
        meta = {reader.meta["key"]: [f"class {n}" for n in range(classes)]}
        name, checksum = save(folder, reader.meta["filename"], meta)
        monkeypatch.setattr(reader, "meta", reader.meta | {"md5": checksum})
        return folder

    return write


@pytest.mark.parametrize("classes", [10, 100])
def test_value_published_folder(write_cifar, classes, tmp_path):
    write_cifar(classes, 120, 20)
    split = load_data(Data(name=f"cifar{classes}", root=str(tmp_path)))
    assert split.train.pictures.shape == (120, 3, 32, 32) and len(split.test.labels) == 20
    assert split.train.labels.tolist() == [n % classes for n in range(120)]
    assert split.train.pictures[:, 2, 5, 7].tolist() == list(range(120))
    assert len(split.test.classes) == classes


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("damage", ["empty", "cut off", "meta"])
def test_error_a_damaged_folder_says_what_to_do(write_cifar, classes, damage, tmp_path):
    folder = write_cifar(classes, 20, 20)
    if damage == "empty":
        for file in folder.iterdir():
            file.unlink()
    else:
        file = folder / ("train" if damage == "cut off" else READERS[classes].meta["filename"])
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match="is incomplete or damaged") as caught:
        load_data(Data(name=f"cifar{classes}", root=str(tmp_path)))
    text = str(caught.value)
    assert str(folder) in text and "download=True" not in text
    assert f"get cifar-{classes}-python.tar.gz from www.cs.toronto.edu/~kriz/cifar.html" in text
    assert f"unpack it in {tmp_path}." in text
