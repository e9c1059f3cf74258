"""Checkpoints: they come back, they run no code, and a full disk leaves the last one whole."""

import errno
import os

import pytest
import torch

from samix.engine.loop import train
from samix.runs import checkpoint
from samix.runs.checkpoint import load_checkpoint, save_checkpoint

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
def test_error_full_disk_in_a_run_and_going_on_later(
    error, tiny, tmp_path, monkeypatch, weights, finished, short_retention
):
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


def test_error_a_checkpoint_of_something_else(tmp_path):
    save_checkpoint(tmp_path, {"step": 3, "model": {}})
    with pytest.raises(ValueError, match=r"last\.ckpt lacks optimizer, recipe"):
        load_checkpoint(tmp_path)
