"""Arrays out of files that may come from anybody."""

import zipfile

import numpy as np
import pytest

from samix.core import archives
from samix.core.archives import read_arrays


def test_value_arrays_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.eye(2))
    assert read_arrays(tmp_path / "a.npz")["x"].tolist() == [0, 1, 2]
    assert list(read_arrays(tmp_path / "a.npz", ["y", "z"])) == ["y"]


def test_error_arrays_that_grow_when_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SLACK", 1000)
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(100_000, np.uint8))
    with pytest.raises(ValueError, match="its arrays would take 100128 bytes"):
        read_arrays(tmp_path / "a.npz")


def claims_much(path) -> None:
    told = b"(3000000000000,), }"
    shape = b"(3,), }".ljust(len(told))
    np.save(path.with_suffix(".npy"), np.zeros(3))
    data = path.with_suffix(".npy").read_bytes().replace(shape, told)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", data)


def cut_header(path) -> None:
    np.save(path.with_suffix(".npy"), np.zeros(3))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", path.with_suffix(".npy").read_bytes().replace(b"), }", b")   "))


def plain_array(path) -> None:
    with path.open("wb") as handle:
        np.save(handle, np.zeros(3))


def with_objects(path) -> None:
    np.savez(path, x=np.array([{}], dtype=object))


def with_text(path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "no array")


@pytest.mark.parametrize("write", [claims_much, cut_header, plain_array, with_objects, with_text])
def test_error_what_is_no_archive_of_arrays(tmp_path, write):
    write(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="."):
        read_arrays(tmp_path / "a.npz")


def test_error_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a file"):
        read_arrays(tmp_path)
