"""Tiny recipes and runs: seconds of training on the embedded set."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from samix.contract import Plain
from samix.core.renamed import ADDED, OLD_NAMES
from samix.data.datasets import Data
from samix.engine import loop
from samix.engine.loop import train
from samix.engine.machine import Machine
from samix.engine.samples import write_retention
from samix.engine.training import Training
from samix.learned import MomentumCopy, Speed
from samix.learned.mixer import MixerConfig
from samix.learned.samix import LearnedMixup
from samix.mixups import CutMix, MixUp
from samix.nn.zoo import ENCODERS, EncoderSpec, Network

# A lively Mixer, so that a wrong draw anywhere shows in the weights.
LEARNED = LearnedMixup(
    mixer=MixerConfig(init_std=0.5),
    copy=MomentumCopy(momentum=0.9, momentum_end=0.99),
    speed=Speed(fraction=0.5),
)
BY_NAME = {"plain": Plain(), "mixup": MixUp(), "cutmix": CutMix(), "samix": LEARNED}

Tiny = Callable[..., Training]


def tiny_recipe(policy: str = "samix", **changes: Any) -> Training:
    """3 epochs of 4 steps on 24 pictures of 16 px."""
    recipe = Training(
        data=Data(size=16, train_pictures=24, test_pictures=12),
        encoder=Network(width=4),
        mixup=BY_NAME[policy],
        machine=Machine(accelerator="cpu"),
        epochs=3,
        batch_size=6,
    )
    return replace(recipe, **changes)


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """Makes a tiny recipe: `tiny("mixup", epochs=2)`."""
    return tiny_recipe


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """The folder of a finished run of SAMix; read only."""
    folder = tmp_path_factory.mktemp("runs") / "samix"
    train(tiny_recipe(), folder, name="tiny/samix", command="samix train tiny/samix", quiet=True)
    return folder


@pytest.fixture
def short_retention(monkeypatch) -> None:
    """Runs end by measuring retention on a tenth of the pictures, which else takes longer than training."""
    monkeypatch.setattr(loop, "write_retention", partial(write_retention, count=24))


def group_norm_network() -> nn.Module:
    """A network without batch statistics: a batch in parts gives the gradient of the whole batch."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


@pytest.fixture
def group_norm(monkeypatch) -> Network:
    """An encoder without batch norm."""
    monkeypatch.setitem(ENCODERS, "group-norm", EncoderSpec(group_norm_network, layer="2"))
    return Network(name="group-norm")


@pytest.fixture
def as_before() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Settings of a learned mixup as a version before 0.2 wrote them: under old names, without groups."""

    def write(values: dict[str, Any]) -> dict[str, Any]:
        values = copy.deepcopy(values)
        mixup = values["mixup"]
        for group, added in ADDED.items():
            mixup[group] = {name: value for name, value in mixup[group].items() if name not in added}
        for old, new in OLD_NAMES.items():
            group, name = new.split(".")
            mixup[old] = mixup[group].pop(name)
        assert all(mixup.pop(group) == {} for group in ("mask", "adjusting", "copy", "speed"))
        return values

    return write


@pytest.fixture
def weights() -> Callable[[Path], dict[str, Tensor]]:
    """Every tensor of a run's checkpoint, model and optimizer, by name."""

    def read(folder: Path) -> dict[str, Tensor]:
        found = torch.load(folder / "last.ckpt", weights_only=True)
        states = found["optimizer"]["state"].items()
        moments = {f"optimizer.{i}.{name}": value for i, state in states for name, value in state.items()}
        return found["model"] | {name: value for name, value in moments.items() if value is not None}

    return read


@pytest.fixture
def read_json() -> Callable[[Path], Any]:
    return lambda path: json.loads(path.read_text())
