"""Files with flipped, missing, doubled or blanked bytes: read, or refused in a sentence that names the file.

Every reader of strangers' files gets forty damaged copies of a file that is whole.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors.torch import save_file

from samix.data.folders import read_picture
from samix.data.packs import read_pack
from samix.runs.checkpoint import load_checkpoint
from samix.runs.mixer_file import read_mixer_file
from samix.runs.openmixup import BLOCK, read_checkpoint
from samix.runs.records import read_config, read_metrics, read_record
from samix.runs.samples import read_samples
from samix.runs.weights import read_weights

SHIPPED = Path(__file__).resolve().parents[2] / "src" / "samix" / "mixers" / "photos.safetensors"
COPIES = 40


def damage(whole: bytes, draw: random.Random) -> bytes:
    """One of the ways in which disks, networks and people spoil files."""
    place = draw.randrange(len(whole))
    # Half of the harm is done in the first bytes, where headers tell the sizes of what follows.
    place = place if draw.random() < 0.5 else min(place, draw.randrange(200))
    kind = draw.choice(["flip", "cut", "blank", "double", "swap", "noise"])
    if kind == "flip":
        return whole[:place] + bytes([whole[place] ^ (1 << draw.randrange(8))]) + whole[place + 1 :]
    if kind == "cut":
        return whole[:place]
    if kind == "blank":
        return whole[:place] + bytes(min(16, len(whole) - place)) + whole[place + 16 :]
    if kind == "double":
        return whole[:place] + whole[place : place + 16] + whole[place:]
    if kind == "swap":
        return whole[place:] + whole[:place]
    return whole[:place] + draw.randbytes(8) + whole[place + 8 :]


def write_weights(path: Path) -> None:
    save_file({"weight": torch.rand(4, 4), "bias": torch.rand(4)}, path, {"samix": json.dumps({"size": 16})})


def write_checkpoint(path: Path) -> None:
    torch.save({"step": 1, "model": {"w": torch.rand(3)}, "optimizer": {}, "recipe": {"a": (1, 2)}}, path)


def write_official(path: Path) -> None:
    torch.save({"state_dict": {f"{BLOCK}value.weight": torch.rand(3, 3)}}, path)


def write_pack(path: Path) -> None:
    picture = path.with_suffix(".png")
    Image.new("RGB", (8, 8), (10, 20, 30)).save(picture)
    data = picture.read_bytes()
    arrays = {"class_names": np.array(["a", "b"])}
    for part in ("train", "val"):
        arrays[f"{part}_bytes"] = np.frombuffer(data * 2, dtype=np.uint8)
        arrays[f"{part}_offsets"] = np.array([0, len(data), 2 * len(data)])
        arrays[f"{part}_labels"] = np.array([0, 1], dtype=np.int16)
    np.savez(path, **arrays)


def write_picture(path: Path) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(colours).save(path)


WRITERS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "encoder.safetensors": (write_weights, read_weights),
    "mixer.safetensors": (lambda path: path.write_bytes(SHIPPED.read_bytes()), read_mixer_file),
    "last.ckpt": (write_checkpoint, lambda path: load_checkpoint(path.parent)),
    "official.pth": (write_official, read_checkpoint),
    "pack.npz": (write_pack, read_pack),
    "picture.png": (write_picture, read_picture),
    "picture.jpg": (write_picture, read_picture),
    "picture.webp": (write_picture, read_picture),
    "config.yaml": (
        lambda path: path.write_text(
            yaml.safe_dump({"epochs": 3, "mixup": {"name": "cutmix", "alpha": 1.0}})
        ),
        read_config,
    ),
    "run.json": (
        lambda path: path.write_text(json.dumps({"name": "demo/plain", "command": "samix", "commit": "a"})),
        read_record,
    ),
    "metrics.csv": (
        lambda path: path.write_text("epoch,loss,top1\n1,0.5,50\n2,0.25,75\n"),
        lambda path: read_metrics(path.parent, 99),
    ),
}
"""File: what writes a whole one, what reads it."""


def assert_read_or_refused(read: Callable[[Path], object], path: Path) -> bool:
    """Whether the file was refused; anything but a sentence with its name fails the test."""
    try:
        read(path)
    except (ValueError, OSError) as error:
        assert path.name in str(error) and "Traceback" not in str(error), repr(error)
        return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITERS)
def test_invariant_damaged_files_are_read_or_refused_by_name(tmp_path, unchecked_shapes, name):
    write, read = WRITERS[name]
    path, draw = tmp_path / name, random.Random(name)
    write(path)
    whole = path.read_bytes()
    assert not assert_read_or_refused(read, path), "the whole file is fine"
    refused = 0
    for _ in range(COPIES):
        path.write_bytes(damage(whole, draw))
        refused += assert_read_or_refused(read, path)
    assert refused > 3, "nothing was damaged"


@pytest.mark.filterwarnings("ignore")
def test_invariant_damaged_samples_of_a_run(write_run, unchecked_shapes):
    folder, draw = write_run(), random.Random(0)
    path = folder / "samples.npz"
    whole = path.read_bytes()
    for _ in range(COPIES):
        path.write_bytes(damage(whole, draw))
        assert_read_or_refused(lambda path: read_samples(path.parent), path)
