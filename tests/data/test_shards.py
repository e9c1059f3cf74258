"""Shards of tars: the index, the pictures, and batches that follow from seed and step."""

import io
import json
import multiprocessing
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data import shard_index, shards
from samix.data.datasets import Data, load_data
from samix.data.loaders import TrainPlan, make_loader
from samix.data.shard_index import (
    fingerprint,
    index_tar,
    load_index,
    make_index,
    read_shards,
    write_index,
)
from samix.data.shards import Shards
from samix.data.views import train_view

SIDE = 16
CLASSES = 3


def encode(value: int, side: int = SIDE) -> bytes:
    """A flat picture."""
    stream = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), value, dtype=np.uint8)).save(stream, "png")
    return stream.getvalue()


def write_tar(path: Path, members: list[tuple[str, bytes]], format: int = tarfile.PAX_FORMAT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def sample(number: int) -> list[tuple[str, bytes]]:
    """A picture that shows its number, and its label."""
    return [(f"{number:04d}.png", encode(number)), (f"{number:04d}.cls", str(number % CLASSES).encode())]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three shards of 7, 7 and 6 pictures to learn from, one of 4 to test on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "set"
    for shard, numbers in enumerate((range(7), range(7, 14), range(14, 20))):
        write_tar(root / f"train-{shard:06d}.tar", [m for number in numbers for m in sample(number)])
    write_tar(root / "val-000000.tar", [m for number in range(100, 104) for m in sample(number)])
    return root


@pytest.fixture
def lazy(monkeypatch):
    """No set is small enough to be decoded at once."""
    monkeypatch.setattr(shards, "SMALL", 100)


def settings(root: Path, **fields) -> Data:
    return Data(name="shards", root=str(root), size=SIDE, **fields)


# What is read.


def test_value_pictures_labels_and_names(folder):
    split = load_data(settings(folder))
    assert isinstance(split.train.pictures, torch.Tensor) and split.train.pictures.shape == (
        20,
        3,
        SIDE,
        SIDE,
    )
    assert split.train.pictures[:, 0, 0, 0].tolist() == list(range(20))
    assert split.train.labels.tolist() == [number % CLASSES for number in range(20)]
    assert split.test.pictures[:, 0, 0, 0].tolist() == [100, 101, 102, 103]
    assert split.train.classes == split.test.classes == ("0", "1", "2")


def test_value_large_sets_are_decoded_when_asked(folder, lazy):
    split = load_data(settings(folder, train_pictures=6))
    assert isinstance(split.train.pictures, Shards) and len(split.train.pictures) == 6
    assert split.train.labels.bincount().tolist() == [2, 2, 2]
    assert [int(p[0, 0, 0]) % CLASSES for p in split.train.pictures] == split.train.labels.tolist()


def test_value_names_of_classes(folder):
    (folder / "classes.txt").write_text("crow\nowl\nwren\nnever seen\n")
    assert load_data(settings(folder)).train.classes == ("crow", "owl", "wren", "never seen")
    (folder / "classes.txt").write_text("crow\nowl\n")
    with pytest.raises(ValueError, match=r"classes.txt names 2 classes, but there are labels up to 2"):
        load_data(settings(folder))


@pytest.mark.parametrize(
    ("train", "val"),
    [
        ("train/000.tar", "val/000.tar"),
        ("imagenet1k-train-0001.tar", "imagenet1k-validation-00.tar"),
        ("train_0.tar", "test_0.tar"),
    ],
)
def test_value_shards_are_told_apart_by_a_word_of_their_name(tmp_path, train, val):
    write_tar(tmp_path / train, sample(0) + sample(1))
    write_tar(tmp_path / val, sample(1))
    write_tar(tmp_path / "training_notes" / "deep" / "x.tar", sample(1))
    split = load_data(settings(tmp_path))
    assert (len(split.train.labels), len(split.test.labels)) == (2, 1)


def test_value_test_pictures_are_for_the_last_word(folder):
    write_tar(folder / "test-000000.tar", sample(50))
    assert len(load_data(settings(folder)).test.labels) == 4
    assert load_data(settings(folder, test="test")).test.pictures[:, 0, 0, 0].tolist() == [50]


def test_value_pictures_are_reduced_when_read(tmp_path):
    for part in ("train", "val"):
        write_tar(tmp_path / f"{part}.tar", [("a.png", encode(9, side=64)), ("a.cls", b"0")])
    assert load_data(settings(tmp_path, shrink=1.5)).train.pictures.shape == (1, 3, 24, 24)


# The index.


def slow_index(path: Path) -> list[tuple[bytes, int]]:
    """Every picture's bytes and label, by tarfile's own means."""
    with tarfile.open(path) as tar:
        whole = {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isreg()}
    found = []
    for name, data in whole.items():
        key = name.rsplit("/", 1)[-1].split(".")[0]
        beside = name.rsplit("/", 1)[0] + "/" if "/" in name else ""
        if name.lower().endswith((".png", ".jpg")) and name.count(".") == 1:
            text, sheet = whole.get(f"{beside}{key}.cls"), whole.get(f"{beside}{key}.json")
            found.append((data, int(text) if text is not None else json.loads(sheet)["label"]))
    return found


ODD = [
    ("d/a.JSON", b'{"label": 2, "caption": "x"}'),
    ("d/a.PNG", encode(1)),
    ("a.cls", b" 1\n"),
    ("a.json", b'{"label": 0}'),
    ("a.txt", b"a caption"),
    ("a.seg.png", encode(7)),
    ("a.png", encode(2)),
    ("n" * 150 + ".png", encode(3)),
    ("n" * 150 + ".cls", b"0"),
]


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT], ids=["pax", "gnu"])
def test_value_the_index_equals_a_slow_loop(tmp_path, format):
    path = write_tar(tmp_path / "odd.tar", ODD, format)
    whole = path.read_bytes()
    found = [(whole[offset : offset + length], label) for offset, length, label in index_tar(path)]
    assert found == [(encode(1), 2), (encode(2), 1), (encode(3), 0)]
    lower = [(name.replace("PNG", "png").replace("JSON", "json"), data) for name, data in ODD]
    assert found == slow_index(write_tar(tmp_path / "lower.tar", lower, format))


def test_value_links_and_other_members_do_not_count(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        for kind, name in (
            (tarfile.SYMTYPE, "b.png"),
            (tarfile.DIRTYPE, "c.png"),
            (tarfile.FIFOTYPE, "d.png"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        for name, data in sample(5):
            info = tarfile.TarInfo(f"../../{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    assert len(index_tar(path)) == 1
    assert not (tmp_path.parent.parent / "0005.png").exists()


def test_value_the_index_is_made_once(folder, monkeypatch):
    first = load_data(settings(folder)).train
    assert (folder / ".samix-train.npz").is_file() and not list(folder.glob("*.tmp"))
    monkeypatch.setattr(shard_index, "index_tar", lambda path: pytest.fail("read again"))
    again = load_data(settings(folder)).train
    assert torch.equal(first.labels, again.labels) and torch.equal(first.pictures, again.pictures)


def test_value_a_changed_shard_is_indexed_again(folder):
    load_data(settings(folder))
    write_tar(folder / "train-000001.tar", sample(30))
    pictures = load_data(settings(folder)).train.pictures
    assert pictures[:, 0, 0, 0].tolist() == [*range(7), 30, *range(14, 20)]


def test_value_where_one_may_not_write_the_index_is_in_the_cache(folder, tmp_path, monkeypatch):
    beside, cached = shard_index.kept_files(folder, "train")

    def refuse(path, index, known):
        if path == beside:
            raise PermissionError("read-only")
        write_index(path, index, known)

    monkeypatch.setattr(shard_index, "write_index", refuse)
    load_data(settings(folder))
    assert cached.is_file() and cached.is_relative_to(tmp_path / "cache") and not beside.exists()
    monkeypatch.setattr(shard_index, "index_tar", lambda path: pytest.fail("read again"))
    assert len(load_data(settings(folder)).train.labels) == 20


@pytest.mark.parametrize(
    "spoil",
    [
        lambda index: index._replace(offset=index.offset + 10**9),
        lambda index: index._replace(offset=-index.offset),
        lambda index: index._replace(shard=index.shard + 1),
        lambda index: index._replace(label=index.label - 1),
        lambda index: index._replace(label=index.label[:-1]),
        lambda index: index._replace(label=index.label.astype(float)),
        lambda index: index._replace(length=index.length[:, None]),
    ],
)
def test_value_an_index_that_cannot_be_is_made_anew(folder, spoil):
    tars = sorted(folder.glob("train*.tar"))
    whole, known = make_index(tars), fingerprint(folder, tars)
    write_index(folder / ".samix-train.npz", spoil(whole), known)
    found = load_index(folder, "train", tars)
    assert all(np.array_equal(a, b) for a, b in zip(found, whole, strict=True))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
def test_value_a_damaged_index_is_made_anew(folder, content):
    (folder / ".samix-train.npz").write_bytes(content)
    assert len(load_data(settings(folder)).train.labels) == 20


# Batches.


def batches(root: Path, start: int = 0, workers: int = 0, epochs: int = 2, **share) -> list:
    data = settings(root, view="crop-flip")
    images = load_data(data).train
    assert isinstance(images.pictures, Shards)
    plan = TrainPlan(20, 4, epochs, start=start, seed=5, **share)
    return list(make_loader(images, train_view(data), plan, workers))


def test_value_going_on_in_mid_epoch_gives_the_same_batches(folder, lazy):
    whole = batches(folder)
    (folder / ".samix-train.npz").unlink()
    resumed = batches(folder, start=3, workers=2)
    assert len(whole) == 10 and len(resumed) == 7
    for expected, found in zip(whole[3:], resumed, strict=True):
        assert torch.equal(expected.pictures, found.pictures) and torch.equal(expected.labels, found.labels)


def seen(root: Path, rank: int, answers) -> None:
    """What one process of two sees of the first epoch."""
    shards.SMALL = 100
    loaded = batches(root, workers=2, epochs=1, rank=rank, world=2)
    answers.put([int(value) for batch in loaded for value in batch.pictures[:, 0, 0, 0]])


@pytest.mark.slow
def test_invariant_two_processes_with_two_workers_see_every_picture_once(folder, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    processes = [context.Process(target=seen, args=(folder, rank, answers)) for rank in range(2)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert sorted(found[0] + found[1]) == list(range(20)) and len(found[0]) == 10


def test_value_few_files_stay_open(folder, lazy):
    train = load_data(settings(folder)).train
    shards.open_file.cache_clear()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    assert [int(train.pictures[i][0, 0, 0]) for i in range(20)] == list(range(20))
    assert shards.open_file.cache_info().currsize == 3
    shards.open_file.cache_clear()
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before


# What is refused.


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("a.png", b"x")], r"its picture 'a.png' has no label \(.cls or .json\)"),
        ([("a.cls", b"1")], "it has no picture"),
        ([("a.png", b""), ("a.cls", b"1")], "its member 'a.png' has 0 bytes"),
        ([*sample(1), *sample(1)], "it has two members '0001.png'"),
        (
            [("a.png", b"x"), ("a.cls", b"one")],
            "its member 'a.cls' is no label, a whole number from 0 on: b'one'",
        ),
        ([("a.png", b"x"), ("a.cls", b"-1")], "'a.cls' is no label"),
        ([("a.png", b"x"), ("a.cls", b"9" * 30)], "'a.cls' is no label"),
        ([("a.png", b"x"), ("a.json", b'{"label": true}')], "'a.json' is no label"),
        ([("a.png", b"x"), ("a.json", b"[")], "'a.json' is no label"),
        ([("a.png", b"x"), ("a.cls", b"1" * (2**20 + 1))], "1048577 bytes, too many for a label"),
    ],
)
def test_error_wrong_members_are_named(tmp_path, members, words):
    path = write_tar(tmp_path / "train-0.tar", members)
    with pytest.raises(ValueError, match=f"cannot read the shard .*train-0.tar: .*{words}"):
        index_tar(path)


@pytest.mark.parametrize("kept", [0, 100, 512, 1500, 3 * 512 + 7])
def test_error_a_cut_off_tar_is_named(tmp_path, kept):
    path = write_tar(tmp_path / "train-0.tar", sample(1) + sample(2))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"cannot read the shard .*train-0.tar: .*Copy it again"):
        index_tar(path)


def test_error_garbage_in_the_middle_of_a_tar(tmp_path):
    path = write_tar(tmp_path / "train-0.tar", [m for number in range(4) for m in sample(number)])
    whole = bytearray(path.read_bytes())
    second = index_tar(path)[1][0] - 512
    whole[second : second + 512] = os.urandom(512)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=f"train-0.tar: it is damaged or cut off at byte {second}"):
        index_tar(path)


def test_error_a_picture_that_cannot_be_read(folder):
    write_tar(folder / "train-000003.tar", [("bad.jpg", b"no picture"), ("bad.cls", b"0")])
    train, _, _ = read_shards(folder)["train"]
    with pytest.raises(
        ValueError, match=r"the picture at byte \d+ of .*train-000003.tar: it is no picture in a known"
    ):
        train[20]
    path = folder / "train-000002.tar"
    os.truncate(path, 100)
    with pytest.raises(
        ValueError, match=r"train-000002.tar: the shard ends in the middle of it. Copy the shard again"
    ):
        train[19]


def test_error_folders_without_shards(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match="the dataset 'shards' needs --data.root"):
        load_data(Data(name="shards"))
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        load_data(settings(tmp_path / "nowhere"))
    (folder / "val-000000.tar").unlink()
    with pytest.raises(
        FileNotFoundError, match="no shard of the split 'val'. Expected names such as train-000000.tar"
    ):
        load_data(settings(folder))


def test_error_a_label_that_train_does_not_have(folder):
    write_tar(folder / "val-000000.tar", [("a.png", encode(0)), ("a.cls", b"3")])
    with pytest.raises(ValueError, match="val in .* has the label 3, train only 3 classes"):
        load_data(settings(folder))
