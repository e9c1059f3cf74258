"""Folders of pictures: what is read, and what is refused by name."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data import folders
from samix.data.datasets import Data, load_data
from samix.data.folders import LazyPictures, read_folder, read_picture
from samix.data.loaders import TrainPlan, make_loader


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


def test_value_a_link_to_nowhere_is_left_out_by_name(folder):
    (folder / "train" / "cat" / "gone.png").symlink_to(folder / "nowhere.png")
    with pytest.warns(UserWarning, match=r"left out 1 picture file that cannot be read: .*gone\.png"):
        split = load_data(Data(name="folder", root=str(folder)))
    assert len(split.train.labels) == 4


def test_error_a_picture_of_fractions_is_named(folder):
    bad = folder / "train" / "cat" / "f.tiff"
    Image.fromarray(np.full((10, 10), 0.5, dtype=np.float32)).save(bad)
    with pytest.raises(ValueError, match=r"cannot read the picture .*f\.tiff: its values are fractions"):
        read_picture(bad)
    with pytest.warns(UserWarning, match=r"left out 1 picture file .*f\.tiff"):
        assert load_data(Data(name="folder", root=str(folder))).train.labels.tolist() == [0, 0, 1, 1]


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
                picture = folder / "train" / name / f"{number}.png"
                picture.write_bytes(picture.read_bytes()[:45])  # its header, which is all that is read
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
        read_picture(bad)
    with pytest.raises(ValueError, match="cannot read the picture .*bad.jpg"):
        read_folder(folder)["train"][0].decode()
    for name, count in (("folder", 4), ("pictures", 6)):
        with pytest.warns(UserWarning, match=r"left out 1 picture file that cannot be read: .*bad\.jpg"):
            split = load_data(Data(name=name, root=str(folder)))
        assert split.train.pictures.shape[0] == len(split.train.labels) == count


def test_value_one_warning_counts_all_files_and_names_the_first(folder):
    for part, name in (("train", "cat"), ("train", "dog"), ("val", "dog")):
        for number in range(2):
            (folder / part / name / f"bad{number}.png").write_bytes(b"no picture")
    cut = folder / "val" / "cat" / "cut.png"
    cut.write_bytes((folder / "val" / "cat" / "x.png").read_bytes()[:-30])
    with pytest.warns(UserWarning) as caught:
        split = load_data(Data(name="folder", root=str(folder)))
    (warning,) = caught
    assert "left out 7 picture files" in str(warning.message) and "and 4 more" in str(warning.message)
    assert "train/cat/bad0.png" in str(warning.message)
    assert (len(split.train.labels), len(split.test.labels)) == (4, 2)


def test_error_a_class_without_a_readable_training_picture(folder):
    dogs = list((folder / "train" / "dog").iterdir())
    for picture in dogs:
        picture.write_bytes(picture.read_bytes()[:45])
    with (
        pytest.warns(UserWarning, match="left out 2"),
        pytest.raises(ValueError, match="no training picture can be read of the classes dog"),
    ):
        load_data(Data(name="folder", root=str(folder)))
    for picture in dogs:
        picture.write_bytes(b"no picture")
    with pytest.raises(ValueError, match="dog has no picture that can be read"):
        load_data(Data(name="folder", root=str(folder)))


def test_value_a_picture_that_fails_in_the_middle_of_a_run_is_stood_in_for(folder, monkeypatch):
    monkeypatch.setattr(folders, "SMALL", 100)
    train = load_data(Data(name="folder", root=str(folder))).train
    kept = train.pictures[3]
    (folder / "train" / "dog" / "0.png").write_bytes(b"gone bad")
    with pytest.warns(UserWarning, match=r"cannot read the picture .*dog/0\.png.* 1\.png stands in for it"):
        stood_in = train.pictures[2]
    assert torch.equal(stood_in, kept)
    loader = make_loader(train, lambda pictures: torch.stack(list(pictures)), TrainPlan(4, 4, 1), workers=1)
    (batch,) = loader
    assert sorted(batch.labels.tolist()) == [0, 0, 1, 1]
    assert sorted(batch.pictures[:, 0, 0, 0].tolist()) == [0, 10, 110, 110]
    (folder / "train" / "dog" / "1.png").unlink()
    with pytest.raises(ValueError, match="cannot read the picture"):
        train.pictures[2]


def test_value_many_files_are_not_looked_at_before_they_are_decoded(folder, monkeypatch):
    (folder / "train" / "dog" / "bad.png").write_bytes(b"no picture")
    seen = []
    monkeypatch.setattr(folders, "has_header", lambda path: seen.append(path) or True)
    monkeypatch.setattr(folders, "CHECKED", 4)
    assert len(read_folder(folder, unreadable=[])["train"][0]) == 5
    assert len(seen) == 2, "the two of val"


def test_error_pictures_that_would_fill_the_memory(folder, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(ValueError, match="cannot read the picture .*exceeds limit"):
        read_picture(folder / "train" / "cat" / "0.png")
    with pytest.raises(ValueError, match="cat has no picture that can be read"):
        load_data(Data(name="folder", root=str(folder)))


@pytest.mark.parametrize("kind", ["jpg", "png"])
def test_value_large_pictures_are_reduced_when_read(tmp_path, kind):
    ramp = np.tile(np.linspace(0, 255, 300, dtype=np.uint8)[None, :, None], (200, 1, 3))
    Image.fromarray(ramp).save(tmp_path / f"x.{kind}", quality=95)
    whole, small = (read_picture(tmp_path / f"x.{kind}", short) for short in (None, 40))
    assert whole.shape == (3, 200, 300) and small.shape == (3, 40, 60)
    middle = small[0, 20].float()
    assert (middle.diff() > 0).all() and abs(middle.mean() - whole.float().mean()) < 2
    assert torch.equal(read_picture(tmp_path / f"x.{kind}", 200), whole)


def test_value_shrink_is_in_multiples_of_the_size(folder, write):
    write("train/cat/large.png", 5, size=(100, 200))
    for shrink, side in ((None, 100), (2.0, 32)):
        split = load_data(Data(name="folder", root=str(folder), size=16, shrink=shrink))
        assert sorted(p.shape[1] for p in split.train.pictures) == [10, 10, 10, 10, side]


def test_value_test_pictures_are_for_the_last_word(folder, write):
    write("test/cat/y.png", 200)
    write("test/dog/y.png", 201)
    data = Data(name="folder", root=str(folder))
    assert load_data(data).test.pictures[:, 0, 0, 0].tolist() == [50, 150]
    assert load_data(replace(data, test="test")).test.pictures[:, 0, 0, 0].tolist() == [200, 201]


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
    with pytest.raises(FileNotFoundError, match="is not a folder. It should hold a folder per class"):
        load_data(Data(name="folder", root=str(tmp_path / "nowhere")))
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


def test_value_pipes_and_devices_are_no_pictures(folder):
    """To read from a pipe that nobody writes into would take for ever."""
    os.mkfifo(folder / "train" / "cat" / "pipe.png")
    (folder / "train" / "dog" / "device.png").symlink_to("/dev/zero")
    with pytest.warns(UserWarning, match="left out 2 picture files that cannot be read"):
        split = load_data(Data(name="folder", root=str(folder), size=8))
    assert len(split.train.labels) == 4
    with pytest.raises(ValueError, match=r"pipe\.png: it is no regular file"):
        folders.read_size(folder / "train" / "cat" / "pipe.png")


def test_error_a_picture_file_of_absurd_size(write, monkeypatch):
    path = write("a.png")
    monkeypatch.setattr(folders, "LARGEST", 10)
    with pytest.raises(ValueError, match="it has more than 10 bytes"):
        read_picture(path)
