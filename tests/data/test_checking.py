"""What a copy of a set holds, and what is wrong with it."""

import pytest
import torch

from samix.data import checking
from samix.data.checking import check_set, find_problems, parts_of
from samix.data.datasets import Data, ImageSet
from samix.data.folders import LazyPictures
from samix.data.official import OFFICIAL, Official
from samix.data.readers import DATASETS, EMBEDDED


@pytest.fixture
def images(write) -> ImageSet:
    """Three classes, one of them empty; pictures of 10 x 10 and one of 20 x 40."""
    paths = [write(f"{k}.png", size=(20, 40) if k == 2 else (10, 10)) for k in range(4)]
    return ImageSet(LazyPictures(paths), torch.tensor([0, 0, 2, 0]), ("a", "b", "c"))


def test_value_numbers_classes_and_mean_size(images, monkeypatch):
    monkeypatch.setattr(checking, "CHUNK", 3)
    told = []
    found = check_set(images, tell=lambda: told.append(1))
    assert found == (4, 3, ["b"], 0, 3, 0, [], 12.5, 17.5)
    assert len(told) == 4


def test_value_pictures_in_memory_need_no_reading():
    images = ImageSet(torch.zeros(3, 3, 8, 9, dtype=torch.uint8), torch.tensor([0, 0, 1]), ("a", "b"))
    assert check_set(images) == (3, 2, [], 1, 2, 0, [], 8.0, 9.0)


def test_value_unreadable_pictures_are_counted_and_the_first_ones_named(images, write):
    images.pictures.paths[0].write_bytes(b"no picture")
    images.pictures.paths[3].unlink()
    found = check_set(images)
    assert found.unreadable == 2 and found.height == 15.0
    assert "0.png: it is no picture in a known format" in found.reasons[0]
    assert "3.png is not a file" in found.reasons[1]
    many = images._replace(
        pictures=images.pictures.pick(torch.zeros(20, dtype=torch.long)), labels=torch.zeros(20).long()
    )
    assert check_set(many).unreadable == 20 and len(check_set(many).reasons) == checking.NAMED


def test_value_quick_looks_for_files_and_decodes_none(images, monkeypatch):
    monkeypatch.setattr(LazyPictures, "read", lambda *words: pytest.fail("decoded"))
    images.pictures.paths[0].write_bytes(b"")
    images.pictures.paths[1].write_bytes(b"no picture")
    images.pictures.paths[3].unlink()
    found = check_set(images, quick=True)
    assert (found.unreadable, found.height, found.width) == (2, None, None)
    assert "0.png is empty." in found.reasons[0] and "3.png cannot be found" in found.reasons[1]


def test_value_problems_are_sentences(images):
    found = {"train": check_set(images), "test": check_set(images)}
    assert find_problems(found, Official(4, 5, 3)) == [
        "4 test pictures, the set has 5",
        "train: classes without a picture: b",
        "test: classes without a picture: b",
    ]
    whole = found["train"]._replace(empty=[])
    assert find_problems({"train": whole, "test": whole}, Official(4, 4, 3)) == []
    assert find_problems({"train": whole}, None) == []
    bad = whole._replace(unreadable=2_000, reasons=["x.png is broken."])
    assert find_problems({"train": bad}, None) == [
        "train: 2,000 pictures that cannot be read",
        "train: x.png is broken.",
    ]


def test_value_without_labels_there_is_nothing_but_train(folder):
    split = DATASETS["pictures"](Data(name="pictures", root=str(folder)).wanted)
    assert list(parts_of(split)) == ["train"]
    judged = split._replace(known=split.test)
    assert list(parts_of(judged)) == ["train", "labelled", "test"]


def test_value_official_numbers_are_of_sets_that_there_are():
    assert set(OFFICIAL) - set(DATASETS) == {"imagenet"}
    assert not set(OFFICIAL) & set(EMBEDDED)
