"""Folders of pictures: what is read, and what is refused by name."""

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data import folders
from samix.data.datasets import Data, load_data
from samix.data.folders import LazyPictures, read_folder, read_picture


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


HIDDEN = ("cat/.ipynb_checkpoints/0-checkpoint.png", "cat/._0.png", "dog/deep/.trash/deeper/x.png")


def test_value_hidden_entries_and_folders_with_a_pictures_name_are_no_pictures(folder, write):
    for path in HIDDEN:
        write(f"train/{path}")
    (folder / "train" / "cat" / "d.png").mkdir()
    write("train/cat/d.png/inside.png", 33)
    train = load_data(Data(name="folder", root=str(folder))).train
    assert train.labels.tolist() == [0, 0, 0, 1, 1]
    assert train.pictures[:, 0, 0, 0].tolist() == [0, 10, 33, 100, 110]
    assert len(load_data(Data(name="pictures", root=str(folder))).train.labels) == 7


def test_value_a_hidden_folder_above_the_root_hides_nothing(folder):
    hidden = folder / ".cache"
    hidden.mkdir()
    (folder / "train").rename(hidden / "train")
    (folder / "val").rename(hidden / "val")
    assert len(load_data(Data(name="folder", root=str(hidden))).train.labels) == 4


@pytest.mark.parametrize("ending", [".jfif", ".jpe", ".JFIF"])
def test_value_rare_endings_of_jpeg_are_read(folder, write, ending):
    write("train/cat/a.jpg", 77).rename(folder / "train" / "cat" / f"a{ending}")
    train = load_data(Data(name="folder", root=str(folder))).train
    assert train.labels.tolist() == [0, 0, 0, 1, 1] and int(train.pictures[2, 0, 0, 0]) == 77


def test_error_a_link_to_nowhere_is_named(folder):
    (folder / "train" / "cat" / "gone.png").symlink_to(folder / "nowhere.png")
    with pytest.raises(ValueError, match="cannot read the picture .*gone.png"):
        load_data(Data(name="folder", root=str(folder)))


def test_error_a_picture_of_fractions_is_named(folder):
    Image.fromarray(np.full((10, 10), 0.5, dtype=np.float32)).save(folder / "train" / "cat" / "f.tiff")
    with pytest.raises(ValueError, match=r"cannot read the picture .*f\.tiff: its values are fractions"):
        load_data(Data(name="folder", root=str(folder)))


def test_value_greyscale_and_alpha_become_three_channels(folder, write):
    write("train/cat/grey.png", 7, "L")
    write("train/cat/alpha.png", 8, "RGBA")
    write("train/cat/JPEG.JPG", 200, "L")
    pictures, labels, _ = load_data(Data(name="folder", root=str(folder))).train
    assert pictures.shape == (7, 3, 10, 10)
    assert sorted(set(pictures[labels == 0][:, :, 0, 0].flatten().tolist())) == [0, 7, 8, 10, 200]


def test_value_pictures_of_several_sizes_stay_a_list(folder, write):
    write("train/cat/large.png", 5, size=(12, 20))
    pictures = load_data(Data(name="folder", root=str(folder))).train.pictures
    assert sorted({tuple(p.shape) for p in pictures}) == [(3, 10, 10), (3, 12, 20)]


def test_value_large_folders_are_decoded_when_asked(folder, monkeypatch):
    data = Data(name="folder", root=str(folder))
    kept = load_data(data).train.pictures
    monkeypatch.setattr(folders, "SMALL", 100)
    lazy = load_data(data).train.pictures
    assert isinstance(lazy, LazyPictures) and len(lazy) == 4
    assert all(torch.equal(lazy[i], kept[i]) for i in range(4))


def test_value_a_subset_of_a_large_folder_stays_undecoded(folder, monkeypatch):
    monkeypatch.setattr(folders, "SMALL", 100)
    split = load_data(Data(name="folder", root=str(folder), train_pictures=2))
    assert isinstance(split.train.pictures, LazyPictures)
    assert split.train.pictures[0].shape == (3, 10, 10)


def test_value_a_folder_of_tiny_imagenets_size_is_kept_in_memory(write, monkeypatch):
    monkeypatch.setattr(folders, "read_all", lambda read, count: torch.empty(count, 0))
    picture = write("one.png", size=(64, 64))
    assert len(LazyPictures([picture] * 100_000).decode()) == 100_000
    assert isinstance(LazyPictures([picture] * 100_000).decode(), torch.Tensor)
    assert isinstance(LazyPictures([picture] * 200_000).decode(), LazyPictures)


def test_value_only_wanted_pictures_are_decoded(folder):
    data = Data(name="folder", root=str(folder), train_pictures=2)
    before = load_data(data).train
    wanted = before.pictures[:, 0, 0, 0].tolist()
    for name, values in {"cat": (0, 10), "dog": (100, 110)}.items():
        for number, value in enumerate(values):
            if value not in wanted:
                (folder / "train" / name / f"{number}.png").write_bytes(b"no picture")
    assert torch.equal(load_data(data).train.pictures, before.pictures)


@pytest.mark.parametrize("content", [b"", b"this is no picture", None], ids=["empty", "text", "cut off"])
def test_error_corrupt_picture_is_named(folder, content):
    bad = folder / "train" / "dog" / "bad.jpg"
    if content is None:
        noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(noise).save(bad)
        content = bad.read_bytes()[:900]
    bad.write_bytes(content)
    with pytest.raises(ValueError, match="cannot read the picture .*bad.jpg"):
        load_data(Data(name="folder", root=str(folder)))
    with pytest.raises(ValueError, match="cannot read the picture .*bad.jpg"):
        read_picture(bad)


def test_error_a_picture_that_would_fill_the_memory_is_named(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(ValueError, match="cannot read the picture .*exceeds limit"):
        load_data(Data(name="folder", root=str(folder)))


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
