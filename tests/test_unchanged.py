"""Nothing changes for users: an earlier commit and today train the same weights, and old runs go on.

The earlier samix comes out of git's history, so this skips where there is none. Weights are compared bit for
bit, on whatever CPU the test runs on, because both trainings happen here.
"""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "8cc0139"
"""The last commit before the folders learned/, runs/ and core/."""
SMALL = ["--epochs", "2", "--machine.threads", "1", "--quiet"]
FEW = [*SMALL, "--data.train_pictures", "192", "--data.test_pictures", "120"]
# What demo's rows had then: its first pictures, and a clean branch with a head of its own.
EMBEDDED = [*FEW, "--data.subset_seed", "0", "--objective.clean_head", "true"]
RUNS = {name: ["train", f"demo/{name}", *EMBEDDED] for name in ("plain", "cutmix", "puzzlemix", "automix")}
# SAMix with its default settings, at both commits; demo/samix has others since.
RUNS |= {"samix": ["train", "digits/samix", *FEW]}
RUNS |= {
    name: ["pretrain", f"ssl-demo/{name}", *SMALL]
    for name in ("moco-v2", "moco-v2+samix-i", "moco-v2+samix-c")
}
STOP = """
import sys
import samix.engine.loop as loop
from samix.cli import run
save = loop.save_checkpoint
def save_and_stop(*arguments):
    save(*arguments)
    raise SystemExit("stopped")
loop.save_checkpoint = save_and_stop
run(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def before(tmp_path_factory) -> Path:
    """The source of the earlier commit."""
    words = ["git", "archive", BEFORE, "src"]
    try:
        packed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"git does not know {BEFORE} here")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def start(source: Path, words: list[str], code: list[str] | None = None) -> subprocess.Popen:
    """A samix of some source on its way."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    program = [sys.executable, *(code or ["-m", "samix"]), *words]
    return subprocess.Popen(
        program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "last.ckpt", weights_only=True)["model"]


def assert_same_weights(first: Path, second: Path) -> None:
    old, new = weights(first), weights(second)
    assert set(old) == set(new)
    different = [name for name in old if not torch.equal(old[name], new[name])]
    assert not different, f"{len(different)} of {len(old)} differ: {different[:3]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_value_the_weights_are_those_of_before(before, tmp_path, name):
    folders = [tmp_path / "before", tmp_path / "now"]
    sources = [before, ROOT / "src"]
    both = [
        start(source, [*RUNS[name], "--out", str(to)]) for source, to in zip(sources, folders, strict=True)
    ]
    for process in both:
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    assert_same_weights(*folders)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["samix", "moco-v2+samix-c"])
def test_value_a_run_of_before_goes_on(before, tmp_path, name):
    """Stopped after an epoch by the old samix, finished by the new one, as if that had trained it all."""
    whole, halved, saving = tmp_path / "whole", tmp_path / "halved", ["--save_every", "1"]
    stopped = start(before, [*RUNS[name], *saving, "--out", str(halved)], ["-c", STOP])
    assert "stopped" in stopped.communicate(timeout=600)[1]
    for folder in (whole, halved):
        process = start(ROOT / "src", [*RUNS[name], *saving, "--out", str(folder)])
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
    assert_same_weights(whole, halved)
