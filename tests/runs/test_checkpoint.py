"""Files that are whole or not there."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import nn

from samix.runs import checkpoint
from samix.runs.checkpoint import load_checkpoint, save_checkpoint
from samix.runs.weights import save_weights
from samix.runs.files import write_text
from samix.engine.loop import train

FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    RuntimeError("[enforce fail at inline_container.cc:662] . unexpected pos 320 vs 214"),
]


@pytest.fixture(params=FULL, ids=["OSError", "RuntimeError"])
def full_disk(request, monkeypatch):
    """torch.save writes some bytes, then the disk is full; torch's own writer says so in words of its own."""

    def save(state, path):
        path.write_bytes(b"half a checkpoint")
        raise request.param

    monkeypatch.setattr(checkpoint.torch, "save", save)


def test_value_a_checkpoint_comes_back(tmp_path):
    recipe = {"a": [1, None, "x"]}
    state = {"step": 3, "model": {"w": torch.arange(3.0)}, "optimizer": {}, "recipe": recipe}
    save_checkpoint(tmp_path, state)
    found = load_checkpoint(tmp_path)
    assert found["step"] == 3 and found["recipe"] == {"a": [1, None, "x"]}
    assert found["model"]["w"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["last.ckpt"]


def test_value_no_checkpoint(tmp_path):
    assert load_checkpoint(tmp_path) is None


def test_error_a_file_that_is_no_checkpoint(tmp_path):
    (tmp_path / "last.ckpt").write_bytes(b"PK nonsense")
    with pytest.raises(ValueError, match=r"(?s)last.ckpt is not a readable checkpoint.*Remove it"):
        load_checkpoint(tmp_path)


def test_error_a_checkpoint_runs_no_code(tmp_path):
    class Surprise:
        def __reduce__(self):
            return (os.system, ("touch surprise",))

    torch.save({"step": Surprise()}, tmp_path / "last.ckpt")
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        load_checkpoint(tmp_path)


@pytest.mark.usefixtures("full_disk")
def test_error_full_disk_without_a_previous_file(tmp_path):
    with pytest.raises(OSError, match=r"could not write .*last.ckpt.*free space"):
        save_checkpoint(tmp_path, {"step": 2})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", FULL, ids=["OSError", "RuntimeError"])
def test_error_full_disk_in_a_run_and_going_on_later(error, tiny, tmp_path, monkeypatch, weights, finished):
    original, calls = torch.save, []

    def save(state, path):
        calls.append(path)
        if len(calls) == 2:
            path.write_bytes(b"half a checkpoint")
            raise error
        original(state, path)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.torch, "save", save)
        with pytest.raises(OSError, match="The previous file, if any, is untouched"):
            train(tiny(), tmp_path, name="tiny/samix", quiet=True)
    assert load_checkpoint(tmp_path)["step"] == 4
    assert not list(tmp_path.glob("*.tmp"))
    train(tiny(), tmp_path, name="tiny/samix", quiet=True)
    found, expected = weights(tmp_path), weights(finished)
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_error_full_disk_while_exporting_weights(tmp_path, monkeypatch):
    """safetensors has an exception of its own; a limit on file sizes makes it fail for real."""
    import resource
    import signal

    path = tmp_path / "encoder.safetensors"
    save_weights(path, {"w": torch.zeros(3)}, {})
    before = path.read_bytes()
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match=r"could not write .*encoder.safetensors"):
            save_weights(path, {"w": torch.zeros(100_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["encoder.safetensors"]


def test_error_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "metrics.csv").mkdir()
    with pytest.raises(OSError, match=r"could not write .*metrics.csv"):
        write_text(tmp_path / "metrics.csv", "text")
    assert not list(tmp_path.glob("*.tmp"))


def test_value_text_replaces_text(tmp_path):
    for text in ("first", "second"):
        write_text(tmp_path / "a.txt", text)
        assert (tmp_path / "a.txt").read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_value_weights_carry_their_description(tmp_path):
    path = tmp_path / "w.safetensors"
    layer = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    save_weights(path, {f"layer.{name}": tensor for name, tensor in layer.state_dict().items()}, {"classes": ["a", "b"]})
    with safe_open(path, "pt") as file:
        assert set(file.keys()) == {"layer.weight", "layer.bias"}
        assert torch.equal(file.get_tensor("layer.weight"), layer.weight)
        assert json.loads(file.metadata()["samix"]) == {"classes": ["a", "b"]}


def test_value_weights_can_be_read_by_whoever_may_read_the_folder(tmp_path):
    write_text(tmp_path / "a.txt", "text")
    save_weights(tmp_path / "w.safetensors", {"w": torch.zeros(1)}, {})
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.txt", "w.safetensors")}
    assert len(modes) == 1


def test_error_a_checkpoint_of_something_else(tmp_path):
    save_checkpoint(tmp_path, {"step": 3, "model": {}})
    with pytest.raises(ValueError, match="is no checkpoint of a run: it lacks optimizer, recipe"):
        load_checkpoint(tmp_path)


def test_error_a_place_that_cannot_even_be_cleaned_up(tmp_path, monkeypatch):
    def refuse(*words, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match=r"could not write .*a.txt.*Check free space and permissions"):
        write_text(tmp_path / "a.txt", "words")
