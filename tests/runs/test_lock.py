"""One process per run folder."""

import os
import signal
import subprocess
import sys

import pytest

from samix.engine.loop import train
from samix.runs.lock import RunInUseError, locked, unless_refused

HOLD = """
import fcntl, os, sys
handle = open(sys.argv[1], "a+")
fcntl.flock(handle, fcntl.LOCK_EX)
handle.write(str(os.getpid())); handle.flush()
print("held", flush=True)
sys.stdin.read()
"""

FORK = """
import os, sys
from pathlib import Path
from samix.runs.lock import locked

with locked(Path(sys.argv[1])):
    if os.fork() == 0:
        print("forked", flush=True)
        sys.stdin.read()
        os._exit(0)
    os.wait()
"""


def test_error_a_folder_in_use_by_another_process(tiny, tmp_path):
    words = [sys.executable, "-c", HOLD, str(tmp_path / ".lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RunInUseError, match=rf"is in use by process {other.pid}\. .*--out"):
            train(tiny(), tmp_path, name="tiny/samix", quiet=True)
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
        other.communicate()
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


def test_value_the_lock_is_free_again_after_an_error(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with (
        locked(tmp_path / "deeper" / "folder"),
        pytest.raises(RunInUseError),
        locked(tmp_path / "deeper/folder"),
    ):
        pass
    with locked(tmp_path):
        pass


@pytest.mark.slow
def test_value_the_lock_is_free_at_once_when_a_killed_process_leaves_a_forked_child(tmp_path):
    """The child stands for a loading worker, which notices its parent's end after seconds only."""
    words = [sys.executable, "-c", FORK, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "forked\n"
        with pytest.raises(RunInUseError, match=rf"by process {other.pid}\."), locked(tmp_path):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait()
        with locked(tmp_path):
            pass


def refuse(folder, *files: str) -> None:
    """A run that is refused once these files are there."""
    with unless_refused(folder), locked(folder):
        for name in files:
            (folder / name).write_text("")
        raise ValueError("refused")


def test_value_a_refused_run_leaves_no_folder(tmp_path):
    with pytest.raises(ValueError, match="refused"):
        refuse(tmp_path / "runs" / "demo" / "0", "config.yaml", "run.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["metrics.csv", "last.ckpt", "notes.txt"])
def test_value_a_run_that_failed_later_keeps_its_files(tmp_path, name):
    with pytest.raises(ValueError, match="refused"):
        refuse(tmp_path / "run", name)
    assert (tmp_path / "run" / name).exists()


def test_value_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "config.yaml").write_text("")
    with pytest.raises(ValueError, match="refused"):
        refuse(tmp_path)
    assert (tmp_path / "config.yaml").exists()


def test_value_a_policy_that_the_first_step_refuses_leaves_no_folder(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("samix.engine.loop.train_step", lambda *words: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(tiny(), tmp_path / "run", name="tiny/samix", quiet=True)
    assert not list(tmp_path.iterdir())


def test_error_a_lock_that_is_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("of somebody else")
    (tmp_path / ".lock").symlink_to(outside)
    with pytest.raises(ValueError, match=r"\.lock is a link"), locked(tmp_path):
        pass
    assert outside.read_text() == "of somebody else"
