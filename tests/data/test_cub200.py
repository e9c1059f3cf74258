"""CUB-200-2011's official lists: what is read, and what of them is missing or wrong."""

import pytest

from samix.data import folders
from samix.data.cub200 import read_cub200
from samix.data.datasets import Data, load_data
from samix.data.folders import LazyPictures


@pytest.fixture
def cub(write, tmp_path):
    """Two classes; pictures in another order than that of the classes."""
    root = tmp_path / "CUB_200_2011"
    files = [
        "002.Crow/b.jpg",
        "001.Black_footed_Albatross/a.jpg",
        "002.Crow/c.jpg",
        "001.Black_footed_Albatross/d.jpg",
    ]
    for number, file in enumerate(files):
        write(f"{root.name}/images/{file}", 20 + 50 * number, size=(16, 16))
    lists = {
        "images.txt": [f"{k} {file}" for k, file in enumerate(files, start=1)],
        "image_class_labels.txt": ["1 2", "2 1", "3 2", "4 1"],
        "train_test_split.txt": ["1 1", "2 1", "3 0", "4 0"],
        "classes.txt": ["1 001.Black_footed_Albatross", "2 002.Crow"],
    }
    for name, lines in lists.items():
        (root / name).write_text("\n".join(lines) + "\n")
    return root


@pytest.mark.parametrize("inside", [False, True], ids=["above", "the folder itself"])
def test_value_pictures_labels_and_names(cub, inside):
    split = load_data(Data(name="cub200", root=str(cub if inside else cub.parent), size=16))
    assert split.train.classes == split.test.classes == ("Black footed Albatross", "Crow")
    assert (split.train.labels.tolist(), split.test.labels.tolist()) == ([1, 0], [1, 0])
    shown = [p.float().mean().round() for part in (split.train, split.test) for p in part.pictures]
    assert shown == pytest.approx([20, 70, 120, 170], abs=1)


def test_value_no_picture_is_decoded_before_it_is_asked_for(cub, monkeypatch):
    monkeypatch.setattr(folders, "read_picture", lambda *words: pytest.fail("decoded"))
    monkeypatch.setattr(folders, "SMALL", 100)
    split = load_data(Data(name="cub200", root=str(cub)))
    assert isinstance(split.train.pictures, LazyPictures) and len(split.train.pictures) == 2


def test_value_pictures_are_reduced_when_read(cub, write):
    write("CUB_200_2011/images/002.Crow/b.jpg", size=(100, 200))
    train = load_data(Data(name="cub200", root=str(cub), size=16, shrink=2.0)).train
    assert sorted(tuple(p.shape[1:]) for p in train.pictures) == [(16, 16), (32, 64)]


@pytest.mark.parametrize(
    "missing", ["images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt"]
)
def test_error_missing_lists_are_named(cub, missing):
    (cub / missing).unlink()
    with pytest.raises(
        FileNotFoundError, match=f"{missing} is missing. Expected images.txt.*CUB_200_2011.tgz"
    ):
        load_data(Data(name="cub200", root=str(cub.parent)))


def test_error_nothing_there_says_where_was_looked(tmp_path, monkeypatch):
    monkeypatch.setenv("SAMIX_DATA", str(tmp_path / "variable"))
    with pytest.raises(
        FileNotFoundError, match="variable/CUB_200_2011.*data/CUB_200_2011.*--data.root or the variable"
    ):
        load_data(Data(name="cub200"))


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("image_class_labels.txt", "4 3", r"line 4 of .*labels.txt has '3', not a whole number from 1 to 2"),
        ("image_class_labels.txt", "4 -1", r"has '-1', not a whole number"),
        (
            "image_class_labels.txt",
            "4",
            r"line 4 of .*labels.txt should be a picture's number and a class, got '4'",
        ),
        ("train_test_split.txt", "4 2", r"has '2', not a whole number from 0 to 1"),
        ("train_test_split.txt", "5 1", r"train_test_split.txt and images.txt are about different pictures"),
        ("images.txt", "4 ../../secret.jpg", r"has '../../secret.jpg', which leads out of the set's folder"),
        ("images.txt", "4 /secret.jpg", r"has '/secret.jpg', which leads out"),
    ],
)
def test_error_a_wrong_line_is_named(cub, name, line, words):
    lines = (cub / name).read_text().splitlines()
    (cub / name).write_text("\n".join([*lines[:3], line]))
    with pytest.raises(ValueError, match=words):
        read_cub200(cub)


def test_error_an_empty_list(cub):
    (cub / "images.txt").write_text("\n")
    with pytest.raises(
        ValueError, match=r"images.txt is empty. Expected lines: a picture's number and a file"
    ):
        read_cub200(cub)
