"""Packs: JPEG files end to end in one .npz, and where they are looked for."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from samix.data.datasets import Data, load_data
from samix.data.packs import Packed, decode, find_root, read_pack

SHARED = Path(os.environ.get("SAMIX_DATA", Path(__file__).resolve().parents[2].parent / "shared" / "data"))


def encoded(array: np.ndarray, kind: str = "JPEG", **options) -> bytes:
    memory = io.BytesIO()
    Image.fromarray(array).save(memory, kind, **options)
    return memory.getvalue()


def flat(colour: int, size: int = 32) -> np.ndarray:
    return np.full((size, size, 3), colour, dtype=np.uint8)


@pytest.fixture
def write_pack(tmp_path) -> Callable[..., Path]:
    """Writes a pack whose picture number n is flat with value 10 n and has label n modulo the classes."""

    def write(name: str, count: int = 6, words: bool = True, size: int = 32, without: str = "") -> Path:
        arrays: dict[str, np.ndarray] = {"class_names": np.array(["n01", "n02", "n03"])}
        if words:
            arrays["class_words"] = np.array(["cat", "dog", "car"])
        for part, number in (("train", count), ("val", 3)):
            files = [encoded(flat(10 * n, size)) for n in range(number)]
            arrays[f"{part}_bytes"] = np.frombuffer(b"".join(files), dtype=np.uint8)
            arrays[f"{part}_offsets"] = np.cumsum([0, *map(len, files)])
            arrays[f"{part}_labels"] = (np.arange(number) % 3).astype(np.int16)
            arrays[f"{part}_names"] = np.array([f"{n}.jpg".encode() for n in range(number)])
        kept = {key: value for key, value in arrays.items() if not without or not key.startswith(without)}
        np.savez(tmp_path / name, **kept)
        return tmp_path / name

    return write


def test_value_decode_converts_greyscale_alpha_and_palette():
    grey = np.tile(np.arange(0, 160, 10, dtype=np.uint8), (16, 1))
    expected = torch.from_numpy(grey).expand(3, 16, 16)
    assert torch.equal(decode(encoded(grey, "PNG")), expected)
    colour = np.stack([grey] * 3 + [np.full_like(grey, 128)], axis=2)
    assert torch.equal(decode(encoded(colour, "PNG")), expected)
    memory = io.BytesIO()
    Image.fromarray(grey).convert("P").save(memory, "PNG")
    assert torch.equal(decode(memory.getvalue()), expected)


@pytest.mark.parametrize("short", [None, 8])
def test_value_decode_turns_a_picture_as_its_exif_says(short):
    stored = Image.new("RGB", (32, 16), "black")
    stored.paste("white", (0, 0, 16, 16))  # white on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: the left side as stored is the top
    buffer = io.BytesIO()
    stored.save(buffer, "JPEG", exif=exif, quality=95)
    upright = decode(buffer.getvalue(), short).float()
    height, width = upright.shape[1:]
    assert height == 2 * width
    assert upright[:, : height // 2 - 1].mean() > 240 and upright[:, height // 2 + 1 :].mean() < 15


def test_value_decode_keeps_the_shades_of_16_bits():
    grey = np.tile(np.arange(0, 160, 10, dtype=np.uint8), (16, 1))
    deep = grey.astype(np.uint16) * 257
    assert torch.equal(decode(encoded(deep, "PNG")), torch.from_numpy(grey).expand(3, 16, 16))


@pytest.mark.parametrize("factor", [1, 257], ids=["8 bits", "16 bits"])
def test_value_decode_keeps_the_shades_of_whole_numbers(factor):
    grey = np.tile(np.arange(0, 256, 16, dtype=np.uint8), (16, 1))
    wide = grey.astype(np.int32) * factor
    with Image.open(io.BytesIO(encoded(wide, "TIFF"))) as image:
        assert image.mode == "I"
    assert torch.equal(decode(encoded(wide, "TIFF")), torch.from_numpy(grey).expand(3, 16, 16))


def test_value_decode_keeps_dark_16_bits_dark():
    dark = np.full((16, 16), 255, dtype=np.uint16)
    assert int(decode(encoded(dark, "TIFF")).max()) == 0


@pytest.mark.parametrize("value", [-1, 65536])
def test_error_whole_numbers_of_more_than_16_bits(value):
    with pytest.raises(ValueError, match=f"its values, {value} to {value}, exceed 16 bits"):
        decode(encoded(np.full((16, 16), value, dtype=np.int32), "TIFF"))


def test_error_fractions():
    with pytest.raises(ValueError, match="its values are fractions of unknown range"):
        decode(encoded(np.full((16, 16), 0.5, dtype=np.float32), "TIFF"))


def test_error_a_broken_pack_is_named(write_pack, tmp_path):
    path = write_pack("some.npz")
    content = path.read_bytes()
    for broken in (content[: len(content) // 2], b"", b"text"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"cannot read the pack .*some.npz.*Copy it again"):
            read_pack(path)
    np.savez(path, class_names=np.array(["a"]))
    with pytest.raises(ValueError, match=r"cannot read the pack .*some.npz.*neither train_bytes"):
        read_pack(path)


def test_error_a_broken_picture_names_its_pack():
    pictures = Packed([encoded(flat(10)), b"no picture"], Path("some.npz"))
    with pytest.raises(ValueError, match="cannot read a picture of some.npz"):
        pictures.pick(torch.tensor([1])).decode()
    assert pictures.pick(torch.tensor([0])).decode().shape == (1, 3, 32, 32)


@pytest.mark.parametrize("words", [True, False])
def test_value_read_pack(write_pack, words):
    parts = read_pack(write_pack("some.npz", words=words))
    packed, labels, names = parts["train"]
    pictures = packed.decode()
    assert pictures.shape == (6, 3, 32, 32) and pictures.dtype == torch.uint8
    assert [int(p.float().mean().round()) for p in pictures] == [0, 10, 20, 30, 40, 50]
    assert labels.tolist() == [0, 1, 2, 0, 1, 2] and labels.dtype == torch.int64
    assert names == (("cat", "dog", "car") if words else ("n01", "n02", "n03"))
    assert len(parts["val"][0]) == 3
    assert torch.equal(packed.pick(torch.tensor([4, 1])).decode(), pictures[[4, 1]])


@pytest.mark.parametrize(
    ("name", "pack", "size"),
    [
        ("cifar10", "cifar10.npz", 32),
        ("cifar100", "cifar100.npz", 32),
        ("tiny-imagenet", "tiny_imagenet.npz", 64),
    ],
)
def test_value_named_datasets_read_their_packs(write_pack, tmp_path, name, pack, size):
    write_pack(pack, size=size)
    split = load_data(Data(name=name, root=str(tmp_path), size=size, train_pictures=3))
    assert split.train.pictures.shape == (3, 3, size, size)
    assert sorted(split.train.labels.tolist()) == [0, 1, 2]
    assert split.test.classes == ("cat", "dog", "car")


def test_value_the_official_tiny_imagenet_goes_before_a_pack_of_a_part(write_pack, tiny_imagenet):
    write_pack("tiny_imagenet.npz", size=64)
    split = load_data(Data(name="tiny-imagenet", root=str(tiny_imagenet.parent), size=64))
    assert split.train.classes == ("n01", "n02") and len(split.train.labels) == 2


def test_value_a_pack_may_stand_where_a_folder_does(write_pack):
    root = str(write_pack("mine.npz"))
    split = load_data(Data(name="folder", root=root))
    assert split.train.pictures.shape == (6, 3, 32, 32) and len(split.test.labels) == 3
    split = load_data(Data(name="pictures", root=root))
    assert split.train.pictures.shape == (9, 3, 32, 32), "all splits, without labels"
    assert split.train.classes == ("picture",) and split.train.labels.tolist() == [0] * 9


def test_error_a_pack_of_one_split_cannot_be_trained_on_with_labels(write_pack):
    path = write_pack("tests.npz", without="train")
    with pytest.raises(ValueError, match=r"tests.npz has no split 'train'.*--data.name pictures"):
        load_data(Data(name="folder", root=str(path)))
    assert len(load_data(Data(name="pictures", root=str(path))).train.labels) == 3


def test_value_pictures_of_several_sizes_stay_apart():
    packed = Packed([encoded(flat(10, 32)), encoded(flat(20, 24))], Path("some.npz"))
    assert [tuple(picture.shape) for picture in packed.decode()] == [(3, 32, 32), (3, 24, 24)]


def test_value_root_then_variable_then_data_folder(tmp_path, monkeypatch):
    for place in ("given", "variable", "here/data"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "x.npz").touch()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("SAMIX_DATA", str(tmp_path / "variable"))
    assert find_root(str(tmp_path / "given"), "x", ("x.npz",), "x.zip") == tmp_path / "given"
    assert find_root(None, "x", ("x.npz",), "x.zip") == tmp_path / "variable"
    (tmp_path / "variable" / "x.npz").unlink()
    assert find_root(None, "x", ("x.npz",), "x.zip").absolute() == tmp_path / "here" / "data"


SOURCES = {
    "cifar10": "Get cifar-10-python.tar.gz from www.cs.toronto.edu/~kriz/cifar.html and unpack it there",
    "cifar100": "Get cifar-100-python.tar.gz from www.cs.toronto.edu/~kriz/cifar.html and unpack it there",
    "tiny-imagenet": "Get tiny-imagenet-200.zip from cs231n.stanford.edu and unpack it there",
}


@pytest.mark.parametrize("name", SOURCES)
def test_error_missing_dataset_says_what_was_looked_for_and_where(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMIX_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError) as caught:
        load_data(Data(name=name))
    text = str(caught.value)
    for part in (name, ".npz", str(tmp_path / "elsewhere"), str(tmp_path / "data"), "--data.root"):
        assert part in text
    assert SOURCES[name] in text


def test_value_the_shared_cifar10_pack():
    if not (SHARED / "cifar10.npz").is_file():
        pytest.skip("the CIFAR-10 pack is not on this machine (set SAMIX_DATA)")
    split = load_data(Data(name="cifar10", root=str(SHARED), train_pictures=1000))
    assert split.train.pictures.shape == (1000, 3, 32, 32)
    assert split.train.labels.bincount().tolist() == [100] * 10
    assert split.test.pictures.shape == (10_000, 3, 32, 32)
    assert split.test.labels.bincount().tolist() == [1000] * 10
    mean = split.test.pictures.float().mean(dim=(0, 2, 3)) / 255
    torch.testing.assert_close(mean, torch.tensor(split.mean), atol=0.01, rtol=0)


def test_value_the_shared_imagenet_samples():
    if not (SHARED / "imagenet_samples.npz").is_file():
        pytest.skip("the ImageNet samples are not on this machine (set SAMIX_DATA)")
    split = load_data(Data(name="pictures", root=str(SHARED / "imagenet_samples.npz"), size=64))
    assert len(split.train.labels) == 200
    assert {min(picture.shape[1:]) for picture in split.train.pictures} == {256}


def test_value_the_shared_tiny_imagenet_pack_has_the_documented_layout():
    if not (SHARED / "tiny_imagenet.npz").is_file():
        pytest.skip("the Tiny-ImageNet pack is not on this machine (set SAMIX_DATA)")
    with np.load(SHARED / "tiny_imagenet.npz", allow_pickle=False) as pack:
        offsets, data, labels = pack["val_offsets"], pack["val_bytes"], pack["val_labels"]
        words = pack["class_words"]
    assert len(offsets) == len(labels) + 1 and offsets[-1] == len(data)
    assert len(words) == 200 and labels.max() < 200
    assert decode(data[offsets[7] : offsets[8]].tobytes()).shape == (3, 64, 64)


@pytest.mark.parametrize("labels", [np.arange(6) / 2, np.arange(4), np.zeros((6, 1), dtype=int)])
def test_error_labels_that_are_no_class_indices(write_pack, labels):
    path = write_pack("some.npz")
    with np.load(path) as pack:
        arrays = {name: pack[name] for name in pack.files}
    np.savez(path, **arrays | {"train_labels": labels})
    with pytest.raises(ValueError, match=r"some.npz: train_labels must be one class index for each of the 6"):
        read_pack(path)


NONSENSE = {
    "no labels": ("train_labels", None, "it has no train_labels"),
    "no offsets": ("train_offsets", None, "it has no train_offsets"),
    "offsets as floats": ("train_offsets", np.linspace(0, 9, 7), "must be whole numbers in a row"),
    "falling offsets": ("train_offsets", np.arange(7)[::-1], "must rise from 0 to"),
    "offsets behind the end": ("train_offsets", np.arange(7) * 10**9, "must rise from 0 to"),
    "one offset": ("train_offsets", np.zeros(1, int), "two at least"),
    "bytes as floats": ("train_bytes", np.zeros(9), "train_bytes must be uint8 in a row"),
    "a table of bytes": ("train_bytes", np.zeros((9, 9), np.uint8), "train_bytes must be uint8 in a row"),
    "no classes": ("class_words", np.zeros(0, "U1"), "a list with at least one name"),
    "one class as text": ("class_words", np.array("cat"), "a list with at least one name"),
    "labels of no class": ("train_labels", np.arange(6) + 10**6, "number of classes, got 1000000 to 1000005"),
    "labels below 0": ("train_labels", np.arange(6) - 1, "number of classes, got -1 to 4"),
}


@pytest.mark.parametrize(("name", "array", "words"), NONSENSE.values(), ids=NONSENSE)
def test_error_plausible_nonsense(write_pack, name, array, words):
    path = write_pack("some.npz")
    with np.load(path) as pack:
        arrays = {key: pack[key] for key in pack.files if key != name}
    np.savez(path, **arrays if array is None else arrays | {name: array})
    with pytest.raises(ValueError, match=f"cannot read the pack .*some.npz: .*{words}.*Copy it again"):
        read_pack(path)
