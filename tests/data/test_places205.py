"""Places205's official lists."""

import pytest

from samix.data.datasets import Data, load_data
from samix.data.places205 import PICTURES


@pytest.fixture(params=PICTURES, ids=["as unpacked", "moved"])
def places(request, write, tmp_path):
    for number, file in enumerate(("a/abbey/x.jpg", "a/apartment_building/outdoor/y.jpg", "a/abbey/z.jpg")):
        write(f"{request.param}/{file}", 20 + 50 * number, size=(16, 16))
    lists = tmp_path / "trainvalsplit_places205"
    lists.mkdir()
    (lists / "train_places205.csv").write_text("a/apartment_building/outdoor/y.jpg 1\na/abbey/x.jpg 0\n")
    (lists / "val_places205.csv").write_text("a/abbey/z.jpg 0\n")
    return tmp_path


def test_value_pictures_labels_and_names(places):
    split = load_data(Data(name="places205", root=str(places), size=16))
    assert split.train.classes == split.test.classes == ("abbey", "apartment_building/outdoor")
    assert (split.train.labels.tolist(), split.test.labels.tolist()) == ([1, 0], [0])
    assert split.train.pictures.float().mean(dim=(1, 2, 3)).tolist() == pytest.approx([70, 20], abs=1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a/abbey/z.jpg 205", "line 1 of .*val_places205.csv has '205', not a whole number from 0 to 204"),
        ("a/abbey/z.jpg", "should be a file and its label"),
        ("/etc/z.jpg 0", "leads out of the set's folder"),
        ("a/bar/z.jpg 3", "train_places205.csv has no picture with the label 2"),
    ],
)
def test_error_a_wrong_line_is_named(places, line, words):
    (places / "trainvalsplit_places205" / "val_places205.csv").write_text(line + "\n")
    with pytest.raises(ValueError, match=words):
        load_data(Data(name="places205", root=str(places)))


def test_error_no_pictures(tmp_path):
    lists = tmp_path / "trainvalsplit_places205"
    lists.mkdir()
    for part in ("train", "val"):
        (lists / f"{part}_places205.csv").write_text("a/abbey/x.jpg 0\n")
    with pytest.raises(
        FileNotFoundError, match="has neither data/vision/.* nor images256. Get imagesPlaces205"
    ):
        load_data(Data(name="places205", root=str(tmp_path)))
