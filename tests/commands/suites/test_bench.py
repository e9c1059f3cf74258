"""samix bench on a tiny family, with a worker that is killed and a suite that is interrupted."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROWS = ("--rows", "plain", "cutmix", "--seeds", "1")


@pytest.fixture
def bench(tmp_path, small):
    """Starts `samix bench demo` on two tiny rows in a folder of its own."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "samix", "bench", "demo", *ROWS, *small, *words],
            cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def wait_for_worker(folder: Path, epochs: int) -> int:
    """The process that trains in a folder, once it has finished so many epochs."""
    metrics, until = folder / "metrics.csv", time.monotonic() + 200
    while time.monotonic() < until:
        if metrics.is_file() and len(metrics.read_text().splitlines()) > epochs:
            return int((folder / ".lock").read_text())
        time.sleep(0.02)
    raise TimeoutError(f"{folder} has not trained {epochs} epochs")


@pytest.mark.slow
def test_value_a_killed_worker_goes_on_and_the_table_is_whole(bench, tmp_path):
    process = bench("--epochs", "40", "--save_every", "1")
    os.kill(wait_for_worker(tmp_path / "runs/demo/plain/0", 3), signal.SIGKILL)
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    assert "demo/plain seed 0: killed by signal 9, started again" in out
    assert "goes on after epoch" in (tmp_path / "runs/demo/plain/0/train.log").read_text()
    with (tmp_path / "results/demo.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["method"], line["seed"]) for line in lines] == [
        ("cutmix", "0"),
        ("plain", "0"),
    ]
    assert all(line["command"].startswith("samix train demo/") for line in lines)
    assert lines[0]["retention"]
    assert "against plain [95 %]" in out and "2 of 2 runs are finished" in out


@pytest.mark.slow
def test_value_an_interrupted_suite_leaves_no_process_and_says_how_to_go_on(bench, tmp_path):
    process = bench("--epochs", "2000")
    worker = wait_for_worker(tmp_path / "runs/demo/plain/0", 1)
    process.send_signal(signal.SIGTERM)  # taken as Ctrl-C, which a shell's background processes never see
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "0 of 2 runs are finished" in out and "the same command goes on" in err
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
