"""Python in other processes, which see samix, one thread each and no GPU."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import samix

SOURCE = Path(samix.__file__).resolve().parents[1]

Start = Callable[..., subprocess.CompletedProcess]


def start_process(*words: Any, timeout: float = 300, **variables: Any) -> subprocess.CompletedProcess:
    known = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment = os.environ | known | {name: str(value) for name, value in variables.items()}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def start() -> Start:
    """Runs Python in another process: `start(script, *words, VARIABLE=value)`."""
    return start_process


@pytest.fixture
def start_two() -> Start:
    """Runs a script in two processes that find each other: `start_two(script, *words)`."""

    def run(script: Path, *words: Any) -> subprocess.CompletedProcess:
        launcher = ["-m", "torch.distributed.run", "--nproc_per_node", 2, "--master_addr", "127.0.0.1"]
        return start_process(*launcher, "--master_port", free_port(), script, *words)

    return run
