"""STL-10's binary files."""

import numpy as np
import pytest
import torch

from samix.data.datasets import Data, load_data
from samix.data.loaders import TrainPlan, make_loader
from samix.data.stl10 import CLASSES
from samix.data.views import train_view


@pytest.fixture
def stl10(tmp_path):
    """Four labelled pictures to learn from, three to test on, five without labels."""
    root = tmp_path / "stl10_binary"
    root.mkdir()
    rng = np.random.default_rng(0)
    for name, count in (("train", 4), ("test", 3), ("unlabeled", 5)):
        rng.integers(0, 256, (count, 3, 96, 96), dtype=np.uint8).tofile(root / f"{name}_X.bin")
    np.array([1, 10, 2, 1], dtype=np.uint8).tofile(root / "train_y.bin")
    np.array([10, 3, 1], dtype=np.uint8).tofile(root / "test_y.bin")
    return root


def slow_picture(path, number):
    """Pixel by pixel: a file holds picture after picture, of each the colours, of each column by column."""
    data, picture = path.read_bytes(), torch.empty(3, 96, 96, dtype=torch.uint8)
    for colour in range(3):
        for x in range(96):
            start = ((number * 3 + colour) * 96 + x) * 96
            picture[colour, :, x] = torch.tensor(list(data[start : start + 96]), dtype=torch.uint8)
    return picture


@pytest.mark.parametrize("inside", [False, True], ids=["above", "the folder itself"])
def test_value_pictures_and_labels(stl10, inside):
    split = load_data(Data(name="stl10", root=str(stl10 if inside else stl10.parent), size=96))
    assert split.train.labels.tolist() == [0, 9, 1, 0] and split.test.labels.tolist() == [9, 2, 0]
    assert split.train.classes == CLASSES and split.known is None and split.labelled is split
    assert torch.equal(split.train.pictures[2], slow_picture(stl10 / "train_X.bin", 2))
    assert torch.equal(split.test.pictures[1], slow_picture(stl10 / "test_X.bin", 1))


def test_value_pictures_without_labels_and_those_to_judge_by(stl10):
    split = load_data(Data(name="stl10-unlabelled", root=str(stl10), size=96))
    assert split.train.pictures.shape == (5, 3, 96, 96) and split.train.labels.tolist() == [0] * 5
    assert torch.equal(split.train.pictures[4], slow_picture(stl10 / "unlabeled_X.bin", 4))
    labelled = load_data(Data(name="stl10", root=str(stl10), size=96))
    assert torch.equal(split.labelled.train.pictures, labelled.train.pictures)
    assert split.labelled.train.classes == CLASSES and split.labelled.known is None
    assert torch.equal(split.test.labels, labelled.test.labels)


def test_value_batches_come_out_of_the_file(stl10):
    data = Data(name="stl10-unlabelled", root=str(stl10), size=96, view="none")
    split = load_data(data)
    (batch,) = make_loader(split.train, train_view(data), TrainPlan(5, 5, 1), workers=1)
    found = {picture.numpy().tobytes() for picture in batch.pictures}
    assert found == {slow_picture(stl10 / "unlabeled_X.bin", k).numpy().tobytes() for k in range(5)}


def test_invariant_what_is_written_to_a_picture_stays_in_memory(stl10):
    before = (stl10 / "train_X.bin").read_bytes()
    load_data(Data(name="stl10", root=str(stl10), size=96)).train.pictures.zero_()
    assert (stl10 / "train_X.bin").read_bytes() == before


def test_error_a_cut_off_file(stl10):
    path = stl10 / "test_X.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"test_X.bin has 82943 bytes, no multiple of a picture's 27648"):
        load_data(Data(name="stl10", root=str(stl10)))
    path.write_bytes(path.read_bytes()[: 2 * 27648])
    with pytest.raises(ValueError, match=r"test_X.bin has 2 pictures, test_y.bin 3 labels"):
        load_data(Data(name="stl10", root=str(stl10)))


def test_error_labels_that_are_none(stl10):
    (stl10 / "train_y.bin").write_bytes(bytes([1, 2, 0, 11]))
    with pytest.raises(ValueError, match=r"train_y.bin should hold a label from 1 to 10 per byte"):
        load_data(Data(name="stl10", root=str(stl10)))


def test_error_the_pictures_without_labels_are_missing(stl10):
    (stl10 / "unlabeled_X.bin").unlink()
    load_data(Data(name="stl10", root=str(stl10)))
    with pytest.raises(FileNotFoundError, match="unlabeled_X.bin is missing"):
        load_data(Data(name="stl10-unlabelled", root=str(stl10)))
