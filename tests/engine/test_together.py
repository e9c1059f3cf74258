"""Two processes that train together: one sentence for an error of both, and an end where one is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import SOURCE

WORDS = [
    "--batch_size",
    "8",
    "--data.size",
    "16",
    "--data.train_pictures",
    "240",
    "--data.test_pictures",
    "12",
    "--encoder.width",
    "4",
    "--machine.accelerator",
    "cpu",
    "--devices",
    "2",
    "--quiet",
]


@pytest.mark.slow
def test_error_of_both_processes_is_told_once(tmp_path, start):
    words = ["train", "demo", "--out", tmp_path / "run", "--data.name", "folder", "--data.root", "nowhere"]
    done = start("-m", "samix", *words, *WORDS)
    assert done.returncode == 2
    assert done.stderr.count("samix: data.root nowhere is not a folder") == 1
    assert not (tmp_path / "run").exists()


def child_of(process: int) -> int:
    """The process that another one started."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        fields = status.read_text().rpartition(") ")[2].split()
        if int(fields[1]) == process:
            return int(status.parent.name)
    raise LookupError(f"{process} has no child")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("killed", ["first", "second"])
def test_value_a_killed_process_ends_the_other_within_a_minute(tmp_path, killed):
    known = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    words = ["train", "demo/plain", "--out", str(tmp_path / "run"), "--epochs", "100000", *WORDS]
    with (
        (tmp_path / "said").open("w+") as said,
        subprocess.Popen(
            [sys.executable, "-m", "samix", *words], env=os.environ | known, stdout=said, stderr=said
        ) as first,
    ):
        wait_for(lambda: (tmp_path / "run" / "last.ckpt").exists())
        second = child_of(first.pid)
        os.kill(first.pid if killed == "first" else second, signal.SIGKILL)
        wait_for(lambda: first.poll() is not None and not is_alive(second))
        said.seek(0)
        assert said.read().count("samix: another process of this training has ended.") == 1


def is_alive(process: int) -> bool:
    """Whether it still runs; one that ended may stay in the table until its parent asks."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for(what, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it takes longer than a minute"
        time.sleep(0.2)
