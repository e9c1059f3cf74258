"""Recipes as values: what they build and what they refuse."""

import warnings

import pytest
import torch

from samix.data.datasets import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.recipe import fit_batch, policy_name, to_dict, warn_of_batch
from samix.engine.training import POLICIES, Training
from samix.learned import LEARNED
from samix.learned.mixer import MixerConfig
from samix.learned.samix import LearnedMixup, SAMix
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised
from samix.nn.zoo import Network


@pytest.mark.parametrize("name", POLICIES)
def test_value_every_policy_builds_and_trains(name, finished):
    network = Network(
        name="small-vit" if name.endswith(("transmix", "tokenmix", "smmix")) else "small-resnet", width=4
    )
    of_a_run = {"mixer": str(finished)} if name == "samix-p" else {}
    recipe = Training(mixup=POLICIES[name](**of_a_run), encoder=network, data=Data(size=16))
    assert policy_name(recipe) == to_dict(recipe)["mixup"]["name"] == name
    model = recipe.build(5)
    kind = Supervised if name == "plain" else SAMix if name in LEARNED else Mixing
    assert isinstance(model, kind)
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
    model = Training(mixup=POLICIES[policy](), objective=objective).build(5)
    method = getattr(model, "method", model)
    assert (method.clean_head is not None) == own_head


def test_value_width_and_drop_path_reach_the_network():
    assert Network(width=6).build(16).probe(16) == (24, 48)
    dropping = Network(name="resnet18-cifar", drop_path=0.2).build(32)
    assert any(type(module).__name__ == "DropPath" for module in dropping.modules())


@pytest.mark.parametrize(
    ("name", "side"), [("deit-s", 4), ("vit-s-moco", 4), ("swin-t", 4), ("small-vit", 16)]
)
def test_value_transformers_are_built_for_the_size_of_the_pictures(name, side):
    with torch.device("meta"):
        encoder = Network(name=name).build(64)
        assert encoder.maps(torch.empty(2, 3, 64, 64)).shape[-2:] == (side, side)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Network(name="resnet-18"), r"unknown encoder 'resnet-18'. Did you mean 'resnet18'\?"),
        (lambda: Network(width=0), "encoder.width must be at least 1, got 0"),
        (lambda: Network(drop_path=1.5), r"encoder.drop_path must lie in \[0, 1\)"),
        (lambda: Optimizer(name="adam"), r"unknown optimizer.name 'adam'. Did you mean 'adamw'\?"),
        (lambda: Optimizer(lr=0.0), "optimizer.lr must be positive, got 0.0"),
        (lambda: Optimizer(mixer_lr=-1.0), "optimizer.mixer_lr must be positive"),
        (lambda: Optimizer(weight_decay=-1e-4), "optimizer.weight_decay must not be negative"),
        (lambda: Optimizer(warmup_epochs=-1.0), "optimizer.warmup_epochs must not be negative"),
        (lambda: Optimizer(momentum=1.5), r"optimizer.momentum must lie in \[0, 1\)"),
        (lambda: Optimizer(clip=0.0), "optimizer.clip must be positive"),
        (lambda: Machine(precision="bf16"), "unknown machine.precision 'bf16'.*bf16-mixed"),
        (lambda: Machine(devices=0), "machine.devices must be at least 1"),
        (lambda: Machine(accumulate=0), "machine.accumulate must be at least 1"),
        (lambda: Training(epochs=0), "epochs must be at least 1, got 0"),
        (lambda: Training(eval_every=0), "eval_every must be at least 1"),
        (lambda: Training(batch_size=1), r"batch_size must be at least 2 .*got 1"),
        (lambda: LearnedMixup(eta=2.0), r"mixup.eta must lie in \[0, 1\], got 2.0"),
        (lambda: LearnedMixup(alpha=0.0), "mixup.alpha must be positive"),
        (lambda: Objective(smoothing=1.0), r"objective.smoothing must lie in \[0, 1\)"),
        (lambda: Network(drop_path=0.1), "small-resnet has no stochastic depth.*resnet18-cifar"),
        (lambda: Network(name="deit-s").build(40), "deit-s takes .* a side of 16 n pixels, got data.size 40"),
        (lambda: Optimizer(lr=float("nan")), "optimizer.lr must be positive, got nan"),
        (lambda: Optimizer(weight_decay=float("nan")), "optimizer.weight_decay must not be negative"),
        (
            lambda: Training(
                encoder=Network(name="small-vit"),
                mixup=LearnedMixup(),
                objective=Objective(clean_weight=1.0, clean_crop=0.5),
            ).build(3),
            "small-vit takes pictures of one size only: leave objective.clean_crop at 1",
        ),
        (lambda: Machine(threads=0), "machine.threads must be at least 1"),
        (lambda: MixerConfig(reduction=0), "mixer.reduction must be at least 1, got 0"),
        (lambda: MixerConfig(init_std=-1.0), "mixer.init_std must not be negative"),
        (lambda: Data(size=64, test_resize=32), r"data.test_resize must be at least data.size \(64\).*32"),
        (
            lambda: Training(mixup=LearnedMixup(), batch_size=4, machine=Machine(accumulate=3)),
            "batch_size 4 in 3 parts .* leaves less than 2 to a part",
        ),
        (
            lambda: Training(batch_size=8, machine=Machine(accumulate=9)),
            "batch_size 8 in 9 parts .* leaves less than 1 to a part",
        ),
        (lambda: Machine(accelerator="foo"), "unknown machine.accelerator 'foo'.*auto, cpu, cuda, gpu, mps"),
        (
            lambda: Training(mixup=LearnedMixup(), batch_size=4, machine=Machine(devices=4)),
            "batch_size 4 in 4 parts",
        ),
    ],
)
def test_error_settings(unchecked_shapes, make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("pictures", "steps", "parts", "batch"),
    [
        (1000, 4, 1, 36),
        (144, 4, 1, 36),
        (143, 4, 1, 35),
        (20, 4, 1, 5),
        (3, 4, 1, 2),
        (20, 0, 1, 20),
        (50, 4, 2, 12),
    ],
)
def test_value_few_pictures_have_small_batches(pictures, steps, parts, batch):
    recipe = Training(batch_size=36, min_steps=steps, machine=Machine(accumulate=parts))
    fitted = fit_batch(recipe, pictures)
    assert fitted.batch_size == batch and fitted.batch_size % parts == 0
    assert fit_batch(fitted, pictures) == fitted, "a run that goes on"


@pytest.mark.parametrize(
    ("pictures", "parts", "batch"), [(20, 1, 20), (21, 2, 20), (36, 1, 36), (500, 1, 36)]
)
def test_value_a_batch_is_never_larger_than_the_set(pictures, parts, batch):
    recipe = Training(batch_size=36, machine=Machine(accumulate=parts))
    fitted = fit_batch(recipe, pictures)
    assert fitted.batch_size == batch
    with warnings.catch_warnings(record=True) as caught:
        warn_of_batch(recipe, fitted, pictures)
    said = [f"batch_size is {batch} instead of 36, because there are only {pictures} training pictures"]
    assert [str(warning.message).partition(";")[0] for warning in caught] == (said if pictures < 36 else [])
