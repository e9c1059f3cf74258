"""Few photographs: which pictures are for training, validation and the last test."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data.datasets import Data, load_data

SHARED = Path(os.environ.get("SAMIX_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))


@pytest.fixture
def pack(tmp_path):
    """Writes a pack of two classes: training pictures of shades 0, 1, ..., tests of shades 200, 201, ..."""

    def write(name: str, train: int = 12, val: int = 4) -> None:
        arrays = {"class_names": np.array(["a", "b"])}
        for part, count, first in (("train", train, 0), ("val", val, 200)):
            files = []
            for number in range(count):
                memory = io.BytesIO()
                Image.fromarray(np.full((20, 24, 3), first + number, np.uint8)).save(memory, "PNG")
                files.append(memory.getvalue())
            arrays[f"{part}_bytes"] = np.frombuffer(b"".join(files), dtype=np.uint8)
            arrays[f"{part}_offsets"] = np.cumsum([0, *map(len, files)])
            arrays[f"{part}_labels"] = (np.arange(count) % 2).astype(np.int16)
            arrays[f"{part}_names"] = np.array([f"{n}.jpg".encode() for n in range(count)])
        np.savez(tmp_path / name, **arrays)

    return write


def shades(images) -> list[int]:
    return sorted(images.pictures[:, 0, 0, 0].tolist())


def test_value_flowers_follow_the_list(pack, tmp_path):
    pack("flowers102.npz")
    (tmp_path / "flowers102_train.txt").write_text("".join(f"{n}.jpg\n" for n in (1, 2, 5, 8)))
    for test, tested in (("val", [0, 3, 4, 6, 7, 9, 10, 11]), ("test", [200, 201, 202, 203])):
        split = load_data(Data(name="flowers102", root=str(tmp_path), test=test))
        assert shades(split.train) == [1, 2, 5, 8] and shades(split.test) == tested
        assert split.train.labels[split.train.pictures[:, 0, 0, 0] == 5].tolist() == [1]


def test_error_flowers_without_or_with_a_strange_list(pack, tmp_path):
    pack("flowers102.npz")
    with pytest.raises(FileNotFoundError, match=r"flowers102_train\.txt is missing"):
        load_data(Data(name="flowers102", root=str(tmp_path)))
    (tmp_path / "flowers102_train.txt").write_text("1.jpg\nother.jpg\n")
    with pytest.raises(ValueError, match=r"names other\.jpg, which .*flowers102\.npz does not hold"):
        load_data(Data(name="flowers102", root=str(tmp_path)))


def test_value_pets_validate_on_what_they_do_not_learn_from(pack, tmp_path):
    pack("oxford_pets.npz")
    data = Data(name="oxford-pets", root=str(tmp_path), train_pictures=6)
    val, test = load_data(data), load_data(Data(**vars(data) | {"test": "test"}))
    assert val.train.labels.bincount().tolist() == [3, 3]
    assert sorted(shades(val.train) + shades(val.test)) == list(range(12))
    assert shades(test.train) == shades(val.train) and shades(test.test) == [200, 201, 202, 203]
    other = load_data(Data(**vars(data) | {"subset_seed": 1}))
    assert shades(other.train) != shades(val.train)


def test_error_pets_with_nothing_to_validate_on(pack, tmp_path):
    pack("oxford_pets.npz")
    with pytest.raises(ValueError, match=r"leaves none of the 12 pictures to validate on: take fewer"):
        load_data(Data(name="oxford-pets", root=str(tmp_path)))
    whole = load_data(Data(name="oxford-pets", root=str(tmp_path), test="test"))
    assert len(whole.train.labels) == 12


def test_value_caltech_is_as_it_is(pack, tmp_path):
    pack("caltech101.npz")
    split = load_data(Data(name="caltech101", root=str(tmp_path)))
    assert (len(split.train.labels), len(split.test.labels)) == (12, 4)


@pytest.mark.parametrize("name", ["cifar10", "caltech101", "digits"])
def test_error_sets_with_one_set_to_test_on(name):
    with pytest.raises(ValueError, match=f"data.test is 'test', but '{name}' has one set of pictures"):
        Data(name=name, test="test")


@pytest.mark.parametrize(
    ("name", "train", "val", "test"), [("flowers102", 1020, 1020, 6149), ("oxford-pets", 555, 3125, 3669)]
)
def test_value_the_shared_packs(name, train, val, test):
    if not (SHARED / "oxford_pets.npz").is_file():
        pytest.skip("the packs of photographs are not on this machine (set SAMIX_DATA)")
    count = 555 if name == "oxford-pets" else None
    split = load_data(Data(name=name, root=str(SHARED), size=32, train_pictures=count))
    assert (len(split.train.labels), len(split.test.labels)) == (train, val)
    assert len(split.train.labels.bincount().unique()) == 1
    last = load_data(Data(name=name, root=str(SHARED), size=32, train_pictures=count, test="test"))
    assert len(last.test.labels) == test
    assert all(
        torch.equal(a, b) for a, b in zip(split.train.pictures[:5], last.train.pictures[:5], strict=True)
    )
