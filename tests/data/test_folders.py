"""Folders of pictures: what is read, and what is refused by name."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data import folders
from samix.data.datasets import Data, load_data
from samix.data.folders import LazyPictures, read_folder, read_picture, read_tiny_imagenet

Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path) -> Writer:
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


def test_value_pictures_labels_and_names(folder):
    split = load_data(Data(name="folder", root=str(folder), size=16))
    assert split.train.classes == split.test.classes == ("cat", "dog")
    assert split.train.labels.tolist() == [0, 0, 1, 1]
    assert split.test.labels.tolist() == [0, 1]
    assert isinstance(split.train.pictures, torch.Tensor)
    assert split.train.pictures[:, 0, 0, 0].tolist() == [0, 10, 100, 110]


def test_value_test_stands_for_val_and_other_files_are_left_alone(folder):
    (folder / "val").rename(folder / "test")
    (folder / "train" / "cat" / "notes.txt").write_text("not a picture")
    (folder / "train" / ".ipynb_checkpoints").mkdir()
    parts = read_folder(folder)
    assert len(parts["train"][0]) == 4 and len(parts["val"][0]) == 2


def test_value_greyscale_and_alpha_become_three_channels(folder, write):
    write("train/cat/grey.png", 7, "L")
    write("train/cat/alpha.png", 8, "RGBA")
    write("train/cat/JPEG.JPG", 200, "L")
    pictures, labels, _ = read_folder(folder)["train"]
    assert pictures.shape == (7, 3, 10, 10)
    assert sorted(set(pictures[labels == 0][:, :, 0, 0].flatten().tolist())) == [0, 7, 8, 10, 200]


def test_value_pictures_of_several_sizes_stay_a_list(folder, write):
    write("train/cat/large.png", 5, size=(12, 20))
    pictures, _, _ = read_folder(folder)["train"]
    assert sorted({tuple(p.shape) for p in pictures}) == [(3, 10, 10), (3, 12, 20)]


def test_value_large_folders_are_decoded_when_asked(folder, monkeypatch):
    kept = read_folder(folder)["train"][0]
    monkeypatch.setattr(folders, "SMALL", 100)
    lazy = read_folder(folder)["train"][0]
    assert isinstance(lazy, LazyPictures) and len(lazy) == 4
    assert all(torch.equal(lazy[i], kept[i]) for i in range(4))


def test_value_a_subset_of_a_large_folder_stays_undecoded(folder, monkeypatch):
    monkeypatch.setattr(folders, "SMALL", 100)
    split = load_data(Data(name="folder", root=str(folder), train_pictures=2))
    assert isinstance(split.train.pictures, LazyPictures)
    assert split.train.pictures[0].shape == (3, 10, 10)


@pytest.mark.parametrize("content", [b"", b"this is no picture", None], ids=["empty", "text", "cut off"])
def test_error_corrupt_picture_is_named(folder, content):
    bad = folder / "train" / "dog" / "bad.jpg"
    if content is None:
        noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(noise).save(bad)
        content = bad.read_bytes()[:900]
    bad.write_bytes(content)
    with pytest.raises(ValueError, match="cannot read the picture .*bad.jpg"):
        read_folder(folder)
    with pytest.raises(ValueError, match="cannot read the picture .*bad.jpg"):
        read_picture(bad)


def test_error_a_picture_that_would_fill_the_memory_is_named(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(ValueError, match="cannot read the picture .*exceeds limit"):
        read_folder(folder)


@pytest.mark.parametrize("part", ["train", "val"])
def test_error_empty_class_folder_is_named(folder, part):
    for picture in (folder / part / "dog").iterdir():
        picture.unlink()
    with pytest.raises(ValueError, match=f"class folder .*{part}/dog has no picture"):
        read_folder(folder)


def test_error_a_class_without_test_pictures(folder):
    (folder / "val" / "dog" / "x.png").unlink()
    (folder / "val" / "dog").rmdir()
    with pytest.raises(ValueError, match="val/dog"):
        read_folder(folder)


def test_error_missing_folders(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a folder. It should hold train/ and val/"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="needs --data.root"):
        load_data(Data(name="folder"))
    (folder / "val").rename(folder / "valid")
    with pytest.raises(FileNotFoundError, match=r"has no folder 'val'. Expected .*/train/<class>/<picture>"):
        read_folder(folder)


def test_error_no_class_folders(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "val").mkdir()
    with pytest.raises(ValueError, match="train has no class folders"):
        read_folder(tmp_path)


def test_error_test_classes_that_training_lacks(folder, write):
    write("val/zebra/x.png")
    with pytest.raises(ValueError, match="val has classes that .*train lacks: zebra"):
        read_folder(folder)


def test_value_tiny_imagenet_layout(write, tmp_path):
    root = tmp_path / "tiny-imagenet-200"
    for label, name in enumerate(("n01", "n02")):
        write(f"tiny-imagenet-200/train/{name}/images/{name}_0.JPEG", 100 * label, size=(64, 64))
    for number, label in enumerate((1, 0, 1)):
        write(f"tiny-imagenet-200/val/images/val_{number}.JPEG", 100 * label, size=(64, 64))
    lines = [f"val_{number}.JPEG\tn0{label + 1}\t0\t0\t63\t63" for number, label in enumerate((1, 0, 1))]
    (root / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    parts = read_tiny_imagenet(root)
    pictures, labels, names = parts["val"]
    assert labels.tolist() == [1, 0, 1] and names == ("n01", "n02")
    assert pictures[:, 0, 0, 0].tolist() == [100, 0, 100]
    split = load_data(Data(name="tiny-imagenet", root=str(tmp_path), size=64))
    assert split.train.pictures.shape == (2, 3, 64, 64) and split.train.labels.tolist() == [0, 1]
