"""Settings and fixtures that every test shares."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# Some virtual machines report AMX but forbid it, and bfloat16 products then crash. oneDNN reads this
# before its first use, so it stands before torch.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import numpy as np
import pytest
import torch
from hypothesis import settings
from jaxtyping import config
from torch import Tensor

torch.set_num_threads(1)
settings.register_profile("samix", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("samix")

pytest_plugins = ["local_hub", "processes", "selfsup", "tiny_runs", "untyped", "written_runs"]

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = Path(os.environ.get("SAMIX_GOLDEN", ROOT.parent / "shared" / "golden"))


def pytest_sessionstart() -> None:
    """Imports samix before any test file imports timm or torchvision, which need it beside a CPU torch."""
    importlib.import_module("samix")


@pytest.fixture(autouse=True)
def seed() -> None:
    """Every test starts from the same random state."""
    torch.manual_seed(0)


@pytest.fixture
def unchecked_shapes() -> Iterator[None]:
    """Switches the tests' shape checks off, so that samix's own errors are seen as users see them."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


@pytest.fixture
def golden() -> Callable[[str], dict[str, Tensor]]:
    """Loads recorded numbers of the official code by file name; skips where they are absent."""

    def load(name: str) -> dict[str, Tensor]:
        path = GOLDEN / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"golden vectors '{name}' are not on this machine (set SAMIX_GOLDEN)")
        with np.load(path, allow_pickle=False) as arrays:
            # Some files hold notes in words as well, which are no tensors.
            numbers = {key: arrays[key] for key in arrays.files if arrays[key].dtype.kind != "U"}
            return {key: torch.as_tensor(value) for key, value in numbers.items()}

    return load


@pytest.fixture
def run_example(tmp_path: Path) -> Callable[[Path, int], tuple[float, float]]:
    """Runs an example for so many steps as a user would; returns its accuracy and that of chance."""

    def run(path: Path, steps: int) -> tuple[float, float]:
        done = subprocess.run(
            [sys.executable, str(path), str(steps)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = re.search(r"accuracy after \d+ steps: ([\d.]+) % \(chance ([\d.]+) %\)", done.stdout)
        assert found, done.stdout
        assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
        return float(found[1]), float(found[2])

    return run
