"""What comes with the extra `train`: nothing of it for the drop-in, and one sentence where it is missing."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from samix.core.extras import TRAIN, needs_train

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORTED_AS = {"scikit-learn": "sklearn"}
WITHOUT = f"""
import sys
for name in {(*TRAIN, "scipy", "pandas", "tensorboard")}:
    sys.modules[name] = None  # importing it fails, as if it was not installed
"""
DROP_IN = """
import samix
import torch

x, y = torch.rand(8, 3, 32, 32), torch.arange(8)
for policy in ("cutmix", ["mixup", "fmix"], samix.load_mixer()):
    images, rows = samix.Mix(policy, classes=10)(x, y)
    assert images.shape == x.shape and rows.shape == (8, 10)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 4, 4), torch.nn.Flatten(), torch.nn.Linear(512, 10))
samix.SAMix.wrap(network, "0", classes=10)(x, y).total.backward()
"""
COMMAND = """
from samix.cli import run
sys.exit(run(["train", "demo/plain"]))
"""


def names(requirements: list[str]) -> list[str]:
    """What requirements are imported as."""
    found = [re.match(r"[\w-]+", line).group() for line in requirements]
    return sorted(IMPORTED_AS.get(name, name.replace("-", "_")) for name in found)


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_value_the_extra_holds_these_packages():
    assert names(PROJECT["optional-dependencies"]["train"]) == sorted(TRAIN)
    assert not set(names(PROJECT["dependencies"])) & set(TRAIN)


@pytest.mark.parametrize("extra", ["dev", "lite0", "tracking"])
def test_value_what_commands_need_comes_with_the_extras_that_serve_commands(extra):
    assert "samix[train]" in PROJECT["optional-dependencies"][extra]


def test_error_a_missing_package_of_the_extra_is_named():
    words = r"samix train needs rich, .* pip install 'samix\[train\]'"
    with pytest.raises(ModuleNotFoundError, match=words), needs_train("samix train"):
        raise ModuleNotFoundError("No module named 'rich.console'", name="rich.console")


def test_error_any_other_keeps_its_own_words():
    with pytest.raises(ModuleNotFoundError, match="^No module named 'wandb'$"), needs_train("samix train"):
        raise ModuleNotFoundError("No module named 'wandb'", name="wandb")


@pytest.mark.slow
def test_value_the_drop_in_and_samix_run_without_the_extra(tmp_path):
    done = python(DROP_IN, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_error_a_command_says_in_one_sentence_what_to_install(tmp_path):
    done = python(COMMAND, tmp_path)
    assert done.returncode == 2
    assert re.fullmatch(r"samix: samix train needs \w+, .*'samix\[train\]'.*\.\n", done.stderr)
    assert not list(tmp_path.iterdir())
