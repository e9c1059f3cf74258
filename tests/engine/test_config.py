"""Recipes as values: what they build and what they refuse."""

import pytest
import torch

from samix.data.datasets import Data
from samix.engine.config import (
    POLICIES,
    Machine,
    Network,
    Optimizer,
    Recipe,
    build_model,
    policy_name,
    to_dict,
)
from samix.methods.augmixing import AugMixing
from samix.methods.mixing import Mixing
from samix.methods.samix import LearnedMixup, SAMix
from samix.methods.supervised import Objective, Supervised
from samix.mixups import MIXUPS


@pytest.mark.parametrize("name", POLICIES)
def test_value_every_policy_builds_and_trains(name):
    network = Network(name="small-vit" if name in ("transmix", "tokenmix") else "small-resnet", width=4)
    recipe = Recipe(mixup=POLICIES[name](), encoder=network, data=Data(size=16))
    assert policy_name(recipe) == to_dict(recipe)["mixup"]["name"] == name
    model = build_model(recipe, 5)
    kind = Supervised if name == "plain" else Mixing if name in MIXUPS else SAMix
    assert isinstance(model, kind) and isinstance(model, AugMixing) == (name == "augmix")
    losses = model(torch.rand(4, 3, 16, 16), torch.arange(4), 0.0)
    assert losses.total.isfinite() and (losses.mixer is not None) == (kind is SAMix)


@pytest.mark.parametrize(
    ("objective", "policy", "own_head"),
    [
        (Objective(clean_weight=1.0), "cutmix", True),
        (Objective(clean_weight=1.0, clean_head=False), "cutmix", False),
        (Objective(), "cutmix", False),
        (Objective(clean_weight=1.0), "plain", False),
    ],
)
def test_value_clean_head(objective, policy, own_head):
    model = build_model(Recipe(mixup=POLICIES[policy](), objective=objective), 5)
    method = getattr(model, "method", model)
    assert (method.clean_head is not None) == own_head


def test_value_width_and_drop_path_reach_the_network():
    assert Network(width=6).build(16).probe(16) == (24, 48)
    dropping = Network(name="resnet18-cifar", drop_path=0.2).build(32)
    assert any(type(module).__name__ == "DropPath" for module in dropping.modules())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Network(name="resnet-18"), r"unknown encoder 'resnet-18'. Did you mean 'resnet18'\?"),
        (lambda: Network(width=0), "encoder.width must be at least 1, got 0"),
        (lambda: Network(drop_path=1.5), r"encoder.drop_path must lie in \[0, 1\)"),
        (lambda: Optimizer(name="adam"), r"unknown optimizer 'adam'. Did you mean 'adamw'\?"),
        (lambda: Optimizer(lr=0.0), "optimizer.lr must be positive, got 0.0"),
        (lambda: Optimizer(mixer_lr=-1.0), "optimizer.mixer_lr must be positive"),
        (lambda: Optimizer(weight_decay=-1e-4), "optimizer.weight_decay must not be negative"),
        (lambda: Optimizer(warmup_epochs=-1.0), "optimizer.warmup_epochs must not be negative"),
        (lambda: Optimizer(momentum=1.5), r"optimizer.momentum must lie in \[0, 1\)"),
        (lambda: Optimizer(clip=0.0), "optimizer.clip must be positive"),
        (lambda: Machine(precision="bf16"), "unknown machine.precision 'bf16'.*bf16-mixed"),
        (lambda: Machine(devices=0), "machine.devices must be at least 1"),
        (lambda: Machine(accumulate=0), "machine.accumulate must be at least 1"),
        (lambda: Recipe(epochs=0), "epochs must be at least 1, got 0"),
        (lambda: Recipe(eval_every=0), "eval_every must be at least 1"),
        (lambda: Recipe(batch_size=1), r"batch_size must be at least 2 .*got 1"),
        (lambda: LearnedMixup(eta=2.0), r"mixup.eta must lie in \[0, 1\], got 2.0"),
        (lambda: LearnedMixup(alpha=0.0), "mixup.alpha must be positive"),
        (lambda: Objective(smoothing=1.0), r"objective.smoothing must lie in \[0, 1\)"),
    ],
)
def test_error_settings(make, words):
    with pytest.raises(ValueError, match=words):
        make()
