"""Tiny-ImageNet's official folder: what is read, and what of it is missing or wrong."""

import shutil
from pathlib import Path

import pytest

from samix.data.datasets import Data, load_data
from samix.data.tiny_imagenet import read_tiny_imagenet


def annotations(root: Path) -> Path:
    return root / "val" / "val_annotations.txt"


def test_value_pictures_labels_and_names(tiny_imagenet):
    split = load_data(Data(name="tiny-imagenet", root=str(tiny_imagenet.parent), size=64))
    assert split.train.pictures.shape == (2, 3, 64, 64) and split.train.labels.tolist() == [0, 1]
    assert split.test.labels.tolist() == [1, 0, 1] and split.test.classes == ("n01", "n02")
    assert split.test.pictures[:, 0, 0, 0].tolist() == [100, 0, 100]


@pytest.mark.parametrize("blank", ["\n", "  \n\n", "\t\n"])
def test_value_blank_lines_are_skipped(tiny_imagenet, blank):
    path = annotations(tiny_imagenet)
    path.write_text(blank + path.read_text() + blank)
    assert read_tiny_imagenet(tiny_imagenet)["val"][1].tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("val_0.JPEG\tn99\t0\t0\t63\t63", "has the class 'n99', for which train/ has no folder"),
        ("val_0.JPEG", "should be a picture, a tab and a class, got 'val_0.JPEG'"),
        ("val_9.JPEG\tn01\t0\t0\t63\t63", r"lists .*val/images/val_9.JPEG, which is not there"),
    ],
    ids=["class", "columns", "picture"],
)
def test_error_a_wrong_line_is_named(tiny_imagenet, line, words):
    path = annotations(tiny_imagenet)
    path.write_text(path.read_text() + "\n" + line + "\n")
    with pytest.raises((ValueError, FileNotFoundError), match=f"line 5 of {path} {words}"):
        read_tiny_imagenet(tiny_imagenet)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_error_an_empty_list(tiny_imagenet, text):
    annotations(tiny_imagenet).write_text(text)
    with pytest.raises(
        ValueError, match=r"val_annotations.txt lists no picture. Unpack tiny-imagenet-200.zip"
    ):
        read_tiny_imagenet(tiny_imagenet)


@pytest.mark.parametrize("missing", ["train", "val/val_annotations.txt", "val"])
def test_error_missing_parts_are_named(tiny_imagenet, missing):
    gone = tiny_imagenet / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    with pytest.raises(
        FileNotFoundError, match=f"{missing}.* is missing. Expected train/<class>/images"
    ) as caught:
        read_tiny_imagenet(tiny_imagenet)
    assert "Errno" not in str(caught.value) and "cs231n.stanford.edu" in str(caught.value)
