"""Files that are whole or untouched."""

import os
import stat
from pathlib import Path

import pytest

from samix.runs import files
from samix.runs.files import own_folder, remove_leftovers, write_atomically, write_bytes, write_text

WRITERS = {
    "text": lambda path, content: write_text(path, content),
    "bytes": lambda path, content: write_bytes(path, content.encode()),
    "any": lambda path, content: write_atomically(path, lambda place: place.write_text(content)),
}


@pytest.fixture(params=WRITERS.values(), ids=WRITERS.keys())
def write(request):
    """Each way to write a file in turn."""
    return request.param


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_value_text_replaces_text(tmp_path):
    for text in ("first", "second"):
        write_text(tmp_path / "a.txt", text)
        assert (tmp_path / "a.txt").read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_value_new_content_replaces_old_and_leaves_nothing_beside(write, tmp_path):
    (tmp_path / "b.txt").write_text("of somebody else")
    for content in ("", "first\n", "second, which is longer\n", "3"):
        write(tmp_path / "a.txt", content)
        assert (tmp_path / "a.txt").read_bytes() == content.encode()
        assert names(tmp_path) == ["a.txt", "b.txt"]
    assert (tmp_path / "b.txt").read_text() == "of somebody else"


def test_value_bytes_are_written_as_they_are(tmp_path):
    data = bytes(range(256)) + b"\r\n\n\x00"
    write_bytes(tmp_path / "a.bin", data)
    assert (tmp_path / "a.bin").read_bytes() == data


def test_value_readers_see_the_old_file_until_the_new_one_is_whole(tmp_path):
    path, seen = tmp_path / "a.txt", []
    path.write_text("old")

    def slowly(place: Path) -> None:
        assert place.parent == path.parent and place != path  # one disk: only there a file can be renamed
        for part in ("n", "e", "w"):
            with place.open("a") as handle:
                handle.write(part)
            seen.append(path.read_text())

    with path.open() as reader:
        write_atomically(path, slowly)
        assert reader.read() == "old", "whoever has opened it reads on in peace"
    assert seen == ["old"] * 3 and path.read_text() == "new"


def test_value_the_new_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    """A power cut would otherwise leave an empty file under the name of the old one."""
    path, real, synced = tmp_path / "a.txt", os.fsync, []
    path.write_text("old")

    def sync(handle: int) -> None:
        synced.append((os.fstat(handle).st_size, path.read_text()))
        real(handle)

    monkeypatch.setattr(files.os, "fsync", sync)
    write_text(path, "longer")
    assert synced == [(len("longer"), "old")]


def test_value_a_file_may_be_read_by_whoever_may_read_the_folder(write, tmp_path):
    (tmp_path / "plain").write_text("")
    write(tmp_path / "a", "")
    assert len({stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "a")}) == 1


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("unexpected pos 320")]
)
@pytest.mark.parametrize("old", ["old", None])
def test_error_a_writer_that_fails_half_way(error, old, tmp_path):
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_text(old)

    def fail(place: Path) -> None:
        place.write_text("ne")
        raise error

    words = rf"could not write .*a\.txt: .*{str(error)[-8:]}.*The previous file, if any, is untouched"
    with pytest.raises(OSError, match=words) as caught:
        write_atomically(path, fail)
    assert caught.value.__cause__ is error
    assert names(tmp_path) == ([] if old is None else ["a.txt"])
    assert old is None or path.read_text() == old


def test_error_what_is_no_matter_of_disks_is_not_renamed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(place: Path) -> None:
        place.write_text("ne")
        raise KeyError("a mistake of ours")

    with pytest.raises(KeyError, match="a mistake of ours"):
        write_atomically(path, fail)
    assert path.read_text() == "old"


def test_error_a_folder_that_is_not_there(write, tmp_path):
    with pytest.raises(OSError, match=r"could not write .*nowhere/a\.txt.*No such file"):
        write(tmp_path / "nowhere" / "a.txt", "text")
    assert names(tmp_path) == []


def test_error_a_folder_that_cannot_be_written(write, tmp_path):
    (tmp_path / "metrics.csv").mkdir()
    with pytest.raises(OSError, match=r"could not write .*metrics.csv"):
        write(tmp_path / "metrics.csv", "text")
    assert not list(tmp_path.glob("*.tmp"))
    assert (tmp_path / "metrics.csv").is_dir()


def test_error_a_place_that_cannot_even_be_cleaned_up(tmp_path, monkeypatch):
    def refuse(*words, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match=r"could not write .*a.txt.*Check free space and permissions"):
        write_text(tmp_path / "a.txt", "words")


def test_invariant_nothing_is_written_through_links(write, tmp_path):
    """As somebody else's run folder may hold them, under the file's own name and under one to be guessed."""
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.write_text("of somebody else")
    folder.mkdir()
    for name in ("a.txt", "a.txt.tmp"):
        (folder / name).symlink_to(outside)
    write(folder / "a.txt", "new")
    assert outside.read_text() == "of somebody else"
    assert (folder / "a.txt").read_text() == "new" and not (folder / "a.txt").is_symlink()


def test_error_a_temporary_file_is_never_one_that_is_there(write, tmp_path, monkeypatch):
    monkeypatch.setattr(files.secrets, "token_hex", lambda count: "guessed")
    outside = tmp_path / "outside"
    outside.write_text("of somebody else")
    (tmp_path / "a.txt.guessed.tmp").symlink_to(outside)
    with pytest.raises(OSError, match="could not write"):
        write(tmp_path / "a.txt", "new")
    assert outside.read_text() == "of somebody else"


def test_value_temporary_names_differ_and_leftovers_go(tmp_path):
    places = []

    def keep(place: Path) -> None:
        place.write_text("half")
        places.append(place)
        (place.parent / f"copy{len(places)}.{place.name}").write_text("of a killed process")

    for _ in range(2):
        write_atomically(tmp_path / "last.ckpt", keep)
    assert places[0] != places[1]
    for name in ("notes.tmp", "b.123.tmp"):
        (tmp_path / name).write_text("of somebody else")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["b.123.tmp", "last.ckpt", "notes.tmp"]


def test_error_a_linked_folder_of_a_run(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "samples").symlink_to(tmp_path / "outside")
    with pytest.raises(ValueError, match=r"samples is a link, and a run writes in its own folder only"):
        own_folder(tmp_path, "samples")
    assert own_folder(tmp_path, "classifier").is_dir()
