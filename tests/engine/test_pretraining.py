"""Pre-training through the engine: every method in seconds, exact resume, tests, exports, bad input."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from samix.commands.fields import from_yaml
from samix.contract import Clustered, Plain
from samix.core.shapes import Stats
from samix.core.small_crops import SmallCrops
from samix.data.datasets import Data, load_data
from samix.engine import initial, loop
from samix.engine.loop import train
from samix.engine.machine import Machine
from samix.engine.pretraining import METHODS, VIEW_POLICIES, Pretraining
from samix.engine.recipe import to_dict
from samix.learned.mixer import MixerConfig
from samix.learned.pseudo import Clusters
from samix.learned.samix_c import ClusterMixup
from samix.learned.samix_i import InstanceMixup
from samix.methods.ssl.byol import BYOLConfig
from samix.methods.ssl.moco import MoCoV1, MoCoV2
from samix.methods.ssl.mocov3 import MoCoV3Config
from samix.methods.ssl.simclr import SimCLRConfig
from samix.methods.ssl.simsiam import SimSiamConfig
from samix.methods.ssl.swav import SwAVConfig
from samix.mixups import CutMix
from samix.nn.zoo import Network

SMALL = {
    "simclr": SimCLRConfig(hidden=16, dim=8),
    "moco-v1": MoCoV1(queue=20, dim=8),
    "moco-v2": MoCoV2(queue=20, dim=8, hidden=16, momentum=0.9, norm_groups=2),
    "moco-v3": MoCoV3Config(hidden=16, dim=8),
    "byol": BYOLConfig(hidden=16, dim=8),
    "simsiam": SimSiamConfig(dim=16, hidden=8),
    "swav": SwAVConfig(hidden=16, dim=8, prototypes=12, stored=12, store_from=0.3),
}
MIXER = MixerConfig(init_std=0.5)
CLUSTERED = ClusterMixup(mixer=MIXER, clusters=Clusters(count=3, min_size=2, refresh_every=2))
MIXUPS: dict[str, Any] = {
    "plain": Plain(),
    "cutmix": CutMix(),
    "samix-i": InstanceMixup(mixer=MIXER, negatives=16),
    "samix-c": replace(CLUSTERED, negatives=16),
}


def tiny(method: str = "moco-v2", mixup: str = "plain", **changes: Any) -> Pretraining:
    """3 epochs of 4 steps on 24 pictures of 16 px."""
    recipe = Pretraining(
        data=Data(size=16, train_pictures=24, test_pictures=12),
        encoder=Network(width=4),
        method=SMALL[method],
        mixup=MIXUPS[mixup],
        machine=Machine(accelerator="cpu"),
        epochs=3,
        batch_size=6,
        knn=5,
    )
    return replace(recipe, **changes)


def test_value_the_tiny_recipes_cover_every_method():
    assert SMALL.keys() == METHODS.keys()


def combinations() -> list:
    """Every method with every kind of mixup; quick are every method by itself, every kind with MoCo v2."""
    return [
        pytest.param(method, mixup, marks=() if mixup == "plain" or method == "moco-v2" else pytest.mark.slow)
        for method in METHODS
        for mixup in MIXUPS
    ]


@pytest.mark.parametrize(("method", "mixup"), combinations())
def test_value_every_method_trains_with_every_kind_of_mixup(method, mixup, tmp_path):
    summary = train(tiny(method, mixup, epochs=1), tmp_path, name=f"tiny/{method}", quiet=True)
    assert 0 <= summary["knn"] <= 100 and 0 <= summary["linear"] <= 100
    assert ("nmi" in summary) == (mixup == "samix-c")
    assert ("mask" in summary) == mixup.startswith("samix")
    weights = load_file(tmp_path / "encoder.safetensors")
    network = tiny(method).encoder.build(16).network
    network.load_state_dict(weights)
    assert (tmp_path / "mixer.safetensors").exists() == mixup.startswith("samix")


@pytest.mark.parametrize(
    ("method", "mixup"),
    [
        ("moco-v2", "samix-c"),
        pytest.param("swav", "samix-i", marks=pytest.mark.slow),
        pytest.param("byol", "cutmix", marks=pytest.mark.slow),
    ],
)
def test_value_resume_equals_no_interruption(method, mixup, tmp_path, monkeypatch):
    recipe = tiny(method, mixup, epochs=2)
    train(recipe, tmp_path / "whole", name="tiny", quiet=True)

    real, seen = loop.check_finite, []

    def stop(losses, step, epoch):
        seen.append(step)
        if step == 6 and len(seen) < 8:
            raise KeyboardInterrupt
        real(losses, step, epoch)

    monkeypatch.setattr(loop, "check_finite", stop)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "parts", name="tiny", quiet=True)
    train(recipe, tmp_path / "parts", name="tiny", quiet=True)
    whole, parts = (
        torch.load(tmp_path / name / "last.ckpt", weights_only=True)["model"] for name in ("whole", "parts")
    )
    assert whole.keys() == parts.keys()
    for key, value in whole.items():
        assert torch.equal(value, parts[key]), key
    if mixup == "samix-c":
        assert {"pseudo.memory.features", "pseudo.memory.centroids", "method.queue.keys"} <= whole.keys()


def test_value_neighbours_are_asked_every_few_epochs(tmp_path):
    train(tiny("moco-v2", "samix-c", eval_every=2), tmp_path, name="tiny", quiet=True)
    header, *lines = (tmp_path / "metrics.csv").read_text().splitlines()
    columns = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    assert [bool(row["knn"]) for row in columns] == [False, True, True]
    assert float(columns[-1]["nmi"]) >= 0 and float(columns[-1]["deviation"]) > 0


@pytest.mark.parametrize("mixup", ["plain", pytest.param("samix-c", marks=pytest.mark.slow)])
def test_value_labelled_pictures_beside_the_set_judge_it(mixup, tmp_path, monkeypatch):
    def without_labels(data):
        split = load_data(data)
        hidden = split.train._replace(labels=split.train.labels * 0, classes=("picture",))
        return split._replace(train=hidden, known=split.train)

    recipe = tiny(mixup=mixup, epochs=1)
    labelled = train(recipe, tmp_path / "labelled", name="tiny", quiet=True)
    monkeypatch.setattr(initial, "load_data", without_labels)
    found = train(recipe, tmp_path / "hidden", name="tiny", quiet=True)
    names = ("knn", "knn_top5", "linear", "linear_top5")
    assert [found[name] for name in names] == [labelled[name] for name in names]
    assert "nmi" not in found and ("nmi" in labelled) == (mixup == "samix-c")


def test_value_without_labels_there_is_no_test(tmp_path):
    from PIL import Image

    (tmp_path / "deep" / "er").mkdir(parents=True)
    for number in range(12):
        shade = Image.new("RGB", (20 + number, 24), (20 * number, 100, 50))
        shade.save(tmp_path / ("deep/er" if number % 2 else "deep") / f"{number}.png")
    data = Data(name="pictures", root=str(tmp_path / "deep"), size=16)
    summary = train(tiny(data=data, epochs=1), tmp_path / "run", name="tiny", quiet=True)
    assert "knn" not in summary and "linear" not in summary
    assert (tmp_path / "run" / "encoder.safetensors").exists()


@pytest.mark.parametrize("mixup", VIEW_POLICIES)
def test_value_every_mixup_takes_a_step_or_says_what_it_lacks(mixup, finished):
    """Those that need a classifier's labels have a form of their own for clusters."""
    attentive = mixup in ("transmix", "tokenmix", "smmix", "tlalign", "mixpro")
    network = Network(name="small-vit" if attentive else "small-resnet", width=4)
    settings = VIEW_POLICIES[mixup]()
    if mixup == "samix-p":
        settings = replace(settings, mixer=str(finished))
    if hasattr(settings, "clusters"):
        settings = replace(settings, clusters=CLUSTERED.clusters)
    recipe = replace(tiny(encoder=network), mixup=settings)
    model = recipe.build(24, Stats((0.0,) * 3, (1.0,) * 3))
    if isinstance(model, Clustered):
        model.begin_clusters(lambda branch: torch.rand(24, 8), torch.arange(24) % 3, seed=0)
    batch = torch.rand(12, 3, 16, 16), torch.arange(6), 0.5
    if {"teacher", "labels", "activation"} & set(getattr(settings, "needs", ())):
        with pytest.raises(ValueError, match=rf"{type(settings).__name__} needs .*self-supervised training"):
            model(*batch)
        return
    losses = model(*batch)
    assert losses.total.isfinite() and (losses.mixer is not None) == settings.learned
    losses.total.backward()
    assert all(parameter.grad is not None for parameter in model.encoder.parameters())


@pytest.mark.parametrize("mixup", VIEW_POLICIES)
def test_value_a_config_file_gives_the_recipe_back(mixup, tmp_path: Path):
    recipe = replace(tiny("byol"), mixup=VIEW_POLICIES[mixup]())
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(to_dict(recipe), sort_keys=False))
    assert from_yaml(path) == recipe


def test_error_more_clusters_than_pictures():
    recipe = tiny(mixup="samix-c")
    with pytest.raises(ValueError, match="only 2 training pictures"):
        recipe.build(2)


def test_error_accumulation_and_names():
    with pytest.raises(ValueError, match="do not see each other as negatives"):
        tiny(machine=Machine(accumulate=2))
    with pytest.raises(ValueError, match="unknown augment 'smal'"):
        tiny(augment="smal")
    with pytest.raises(ValueError, match="knn must not be negative"):
        tiny(knn=-1)


def test_error_another_recipe_in_the_folder(tmp_path):
    train(tiny(epochs=1), tmp_path, name="tiny", quiet=True)
    other = replace(tiny(epochs=1), method=replace(SMALL["moco-v2"], tau=0.5))
    with pytest.raises(ValueError, match="method.tau: there 0.2, here 0.5"):
        train(other, tmp_path, name="tiny", quiet=True)


def test_value_swav_trains_with_small_crops(tmp_path):
    recipe = tiny("swav", "cutmix")
    with_crops = replace(recipe, crops=SmallCrops(count=3, size=8), augment="swav-multi")
    summary = train(replace(with_crops, epochs=1), tmp_path / "run", name="tiny/swav", quiet=True)
    assert 0 <= summary["knn"] <= 100
    assert from_yaml(tmp_path / "run" / "config.yaml") == replace(with_crops, epochs=1)


def test_error_small_crops():
    recipe = tiny("moco-v2", "plain")
    crops = SmallCrops(count=2, size=8)
    with pytest.raises(ValueError, match=r"MoCo learns from two views: leave crops\.count at 0"):
        replace(recipe, crops=crops).build(60)
    with pytest.raises(ValueError, match=r"crops\.size is 96, .* than the views, whose data\.size is 16"):
        replace(recipe, crops=SmallCrops(count=2))
    with pytest.raises(ValueError, match=r"small-vit takes pictures of one size, so it cannot"):
        replace(recipe, encoder=Network(name="small-vit"), crops=crops)
