"""Runs that start from weights: which, how pictures are normalised for them, and going on without them."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from samix.commands.fields import from_yaml
from samix.commands.probing import open_run
from samix.commands.trained import load_trained
from samix.contract import Losses
from samix.core.shapes import Stats
from samix.data.datasets import IMAGENET_STATS, load_data
from samix.engine import initial, loop
from samix.engine.initial import find_file, input_stats, load_initial, load_split
from samix.engine.loop import train
from samix.engine.optim import Optimizer
from samix.engine.pretraining import Pretraining
from samix.learned.samix_i import InstanceMixup
from samix.methods.ssl.moco import MoCoV2
from samix.methods.ssl.simsiam import SimSiamConfig
from samix.nn.pretrained import LITE0_STATS
from samix.nn.stages import stages_of
from samix.nn.zoo import Network

pytestmark = pytest.mark.usefixtures("short_retention")

STATS = Stats((0.3, 0.4, 0.5), (0.25, 0.5, 0.125))


@pytest.fixture
def file(tmp_path):
    """A file as another run of samix would leave it, with a normalisation of its own."""
    path = tmp_path / "start.safetensors"
    about = '{"encoder": {"name": "small-resnet"}, "mean": [0.3, 0.4, 0.5], "std": [0.25, 0.5, 0.125]}'
    save_file(Network(width=4).build(16).network.state_dict(), path, metadata={"samix": about})
    return path


@pytest.fixture
def from_file(tiny, file):
    """A tiny recipe that starts from the file: `from_file("plain", frozen=2)`."""

    def make(policy: str = "samix", *, optimizer: Optimizer | None = None, **network):
        encoder = Network(width=4, weights=str(file), **network)
        return tiny(policy, encoder=encoder, optimizer=optimizer or Optimizer(), epochs=2)

    return make


def self_supervised(recipe, **changes):
    """The same without labels."""
    shared = {name: getattr(recipe, name) for name in ("data", "encoder", "machine", "epochs", "batch_size")}
    return Pretraining(**(shared | {"method": MoCoV2(queue=12, dim=8, hidden=16, norm_groups=2)} | changes))


def assert_loaded(network, tensors):
    assert all(value.equal(tensors[name]) for name, value in network.state_dict().items())


# ------------------------------------------------------------ which weights


def test_value_encoder_and_momentum_copy_start_from_the_file(from_file, file):
    tensors, recipe = load_file(file), from_file()
    model = recipe.build(12)
    for network in (model.encoder.network, model.momentum.encoder.network):
        assert_loaded(network, tensors)
    assert not recipe.build(12, initial=False).encoder.network.conv1.weight.equal(tensors["conv1.weight"])


@pytest.mark.parametrize("mixup", [None, InstanceMixup()], ids=["plain", "samix-i"])
def test_value_self_supervised_branches_start_from_the_file(mixup, from_file, file):
    recipe = self_supervised(from_file(), **({"mixup": mixup} if mixup else {}))
    model = recipe.build(24)
    method = model if mixup is None else model.method
    for branch in (method.branch, method.momentum):
        assert_loaded(branch.encoder.network, load_file(file))


def test_value_a_run_folder_is_its_encoder(tiny, finished):
    settings = Network(width=4, weights=str(finished))
    encoder = settings.build(16)
    load_initial(encoder, settings, 16)
    assert_loaded(encoder.network, load_file(finished / "encoder.safetensors"))
    assert input_stats(settings) == IMAGENET_STATS


def test_value_the_weights_of_timm(monkeypatch):
    settings = Network(name="timm:resnet18", weights="timm")
    asked, build = [], Network.build

    def instead(self, size, **options):
        asked.append(options)
        return build(self, size)

    monkeypatch.setattr(Network, "build", instead)
    encoder = settings.build(32)
    before = encoder.network.conv1.weight.clone()
    load_initial(encoder, settings, 32)
    assert asked == [{}, {"pretrained": True}]
    assert not encoder.network.conv1.weight.equal(before)


# ------------------------------------------------------------ normalisation


def test_value_the_normalisation_of_every_source(file, tmp_path):
    assert input_stats(Network()) is None
    assert input_stats(Network(name="lite0", weights="lite0")) == LITE0_STATS
    assert input_stats(Network(name="timm:vit_tiny_patch16_224", weights="timm")).mean == (0.5, 0.5, 0.5)
    assert input_stats(Network(name="resnet18", weights="timm")) == IMAGENET_STATS
    assert input_stats(Network(width=4, weights=str(file))) == STATS
    bare = tmp_path / "bare.pth"
    torch.save({"a": torch.ones(1)}, bare)
    assert input_stats(Network(name="lite0", weights=str(bare))) == ((0.5,) * 3, (0.5,) * 3)
    assert input_stats(Network(weights=str(bare))) is None


def test_value_without_weights_the_data_decide(tiny, tmp_path):
    assert load_split(tiny(), tmp_path).stats == load_data(tiny().data).stats


def test_value_all_of_a_run_sees_one_normalisation(from_file, tmp_path, read_json, monkeypatch):
    seen = set()
    for module in ("samix.engine.testing", "samix.engine.samples", "samix.evaluate.features"):
        monkeypatch.setattr(f"{module}.normalize", partial(watch_normalize, seen=seen))
    recipe, folder = from_file(), tmp_path / "run"
    train(recipe, folder, name="tiny/samix", quiet=True)
    assert read_json(folder / "run.json")["mean"] == list(STATS.mean)
    about = read_json(folder / "config.json")
    assert (about["mean"], about["std"]) == (list(STATS.mean), list(STATS.std))
    written = from_yaml(folder / "config.yaml")
    assert written == recipe
    assert (
        yaml.safe_load((folder / "config.yaml").read_text())["encoder"]["weights"] == recipe.encoder.weights
    )
    opened = open_run(folder, [])
    opened.features(opened.split.test)
    assert load_trained(folder, recipe).split.stats == opened.split.stats == STATS
    assert seen == {tuple(STATS)}


def watch_normalize(pictures, mean, std, *, seen):
    seen.add((mean, std))
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (mean, std))
    return (pictures / 255 - mean) / std


def test_value_policies_that_need_pixels_know_the_normalisation(from_file, tmp_path):
    recipe = from_file("cutmix")
    model = recipe.build(12, load_split(recipe, tmp_path).stats)
    assert model.stats == STATS


# ------------------------------------------------------------ going on


class Interrupted(Exception):
    """Stands for a power cut."""


def test_value_a_run_goes_on_without_the_file(from_file, file, tmp_path, monkeypatch, weights):
    recipe = from_file(frozen=2, optimizer=Optimizer(layer_decay=0.7, head_lr=2.0))
    train(recipe, tmp_path / "whole", name="tiny/whole", quiet=True)

    def check(losses: Losses, step: int, epoch: int) -> None:
        if step == 5:
            raise Interrupted

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(loop, "check_finite", check)
        train(recipe, tmp_path / "cut", name="tiny/cut", quiet=True)
    file.unlink()
    train(recipe, tmp_path / "cut", name="tiny/cut", quiet=True)
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert whole.keys() == cut.keys() and all(value.equal(cut[name]) for name, value in whole.items())
    assert load_trained(tmp_path / "cut", recipe).split.stats == STATS
    with pytest.raises(FileNotFoundError, match="there are no weights at"):
        train(recipe, tmp_path / "new", name="tiny/new", quiet=True)


# ------------------------------------------------------------ frozen stages in a run


@pytest.mark.parametrize("kind", ["plain", "samix", "moco-v2", "simsiam"])
def test_value_frozen_stages_do_not_move(kind, from_file, file, tmp_path, weights):
    recipe = from_file("samix" if kind == "samix" else "plain", frozen=2, freeze_norm=True)
    if kind == "moco-v2":
        recipe = self_supervised(recipe)
    if kind == "simsiam":
        recipe = self_supervised(recipe, method=SimSiamConfig(dim=16, hidden=8))
    train(replace(recipe, epochs=1), tmp_path / "run", name="tiny/frozen", quiet=True)
    tensors, found = load_file(file), weights(tmp_path / "run")
    stages = stages_of(Network(width=4).build(16).network)
    frozen = {name for stage in stages[:2] for name in stage}
    learned = {name for stage in stages[2:] for name in stage}
    prefixes = {name.removesuffix("conv1.weight") for name in found if name.endswith("network.conv1.weight")}
    assert len(prefixes) == {"plain": 1, "samix": 2, "moco-v2": 2, "simsiam": 1}[kind]
    for prefix in prefixes:
        for name, value in tensors.items():
            same = found[prefix + name].equal(value)
            assert same if name in frozen or name not in learned else True, name
        assert not found[prefix + "layer4.0.conv2.weight"].equal(tensors["layer4.0.conv2.weight"])


def test_value_the_optimizer_has_no_frozen_weights(from_file):
    groups = from_file(frozen=5).build(12).parameter_groups()
    assert [list(p.shape) for p in groups["encoder"]] == [[12, 32], [12]]  # the head alone
    assert all(p.requires_grad for group in groups.values() for p in group)


# ------------------------------------------------------------ what is refused


def test_error_no_such_weights(tiny, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"there are no weights at 'imagenet': encoder.weights takes timm"
    ):
        tiny(encoder=Network(weights="imagenet")).build(12)
    with pytest.raises(
        FileNotFoundError, match=r"has no encoder.safetensors, which a run writes when it ends"
    ):
        find_file(str(tmp_path))
    with pytest.raises(ValueError, match=r"encoder.weights must name a source or a file, got nothing"):
        Network(weights=" ")


def test_error_weights_of_another_network(from_file, file, finished):
    other = Network(name="lite0", weights=str(finished))
    with pytest.raises(ValueError, match=r"are those of 'small-resnet', not of 'lite0'"):
        load_initial(other.build(32), other, 32)
    wider = Network(width=8, weights=str(file))
    with pytest.raises(
        ValueError, match=r"not of this network, ResNet: 'conv1.weight' is \[4, 3, 3, 3\] there"
    ):
        load_initial(wider.build(16), wider, 16)
    for weights in ("lite0", "timm"):
        wrong = Network(weights=weights)
        with pytest.raises(ValueError, match=r"(of EfficientNet-Lite0, not of|no weights for) small-resnet"):
            load_initial(wrong.build(16), wrong, 16)


def test_error_timm_without_a_way_to_the_internet(monkeypatch):
    settings = Network(name="timm:resnet18", weights="timm")
    encoder = settings.build(32)

    def refuse(*arguments, **options):
        raise ConnectionError(f"Name or service not known. And {'much ' * 30} more\nand more")

    monkeypatch.setattr(initial.Network, "build", refuse)
    words = (
        r"timm could not get its weights of resnet18 \(ConnectionError: Name or service not known\). Without"
    )
    with pytest.raises(ValueError, match=words):
        load_initial(encoder, settings, 32)
