"""Models loaded again from run folders: as trained, ready to predict, to mix and to go on."""

from dataclasses import replace

import pytest
import torch

import samix
from samix.contract import Plain
from samix.core.pairing import Pairing
from samix.data.datasets import Data
from samix.engine.loop import train
from samix.engine.machine import Machine
from samix.engine.pretraining import Pretraining
from samix.engine.training import POLICIES
from samix.learned import ClusterMixup, Clusters, InstanceMixup
from samix.methods.ssl import MoCoV2
from samix.nn.zoo import Network

pytestmark = pytest.mark.usefixtures("short_retention")

X, Y = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0)), torch.arange(4)
PAIRING = Pairing(torch.tensor([0.3]), torch.tensor([1, 0, 3, 2]))


def test_value_samix_of_a_run(finished):
    model = samix.SAMix.load(finished)
    assert isinstance(model, samix.SAMix) and not any(module.training for module in model.modules())
    saved = torch.load(finished / "last.ckpt", weights_only=True)["model"]
    assert model.state_dict().keys() == saved.keys()
    assert all(torch.equal(value, saved[name]) for name, value in model.state_dict().items())
    assert model.settings.copy.momentum == 0.9  # the run's own settings, not the defaults


def test_value_it_predicts_and_mixes_as_the_exported_parts_do(finished):
    model = samix.SAMix.load(str(finished))
    with torch.no_grad():
        torch.testing.assert_close(model.heads(X)["mix_q"], samix.load_classifier(finished)(X))
    painter = samix.load_mixer(finished).painter
    masks = painter.mixer(painter.encoder.maps(X), PAIRING, (16, 16))
    torch.testing.assert_close(model.paint(model.maps(X), PAIRING, (16, 16)), masks)
    assert model.picture(X, Y, PAIRING).x.shape == X.shape


def test_gradient_it_goes_on_training(finished):
    model = samix.SAMix.load(finished).train()
    optimizer = torch.optim.SGD([{"params": group} for group in model.parameter_groups().values()], lr=0.1)
    before = {name: value.clone() for name, value in model.named_parameters()}
    model(X, Y, progress=0.5).total.backward()
    optimizer.step()
    model.after_step(0.5)
    moved = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    for part in ("method.encoder", "method.head", "mixer", "momentum"):
        assert any(name.startswith(part) for name in moved), part


@pytest.mark.parametrize("name", ["automix", "adautomix"])
def test_value_automix_is_a_samix_too(name, tiny, tmp_path):
    train(tiny(mixup=POLICIES[name](), epochs=1), tmp_path, name=f"tiny/{name}", quiet=True)
    model = samix.SAMix.load(tmp_path)
    assert isinstance(model, samix.AdAutoMix) == (name == "adautomix")
    assert isinstance(model.settings, samix.AutoMixed) and model.settings.local == 0


@pytest.mark.parametrize(
    ("mixup", "kind"),
    [
        (InstanceMixup(), samix.SAMixI),
        (ClusterMixup(clusters=Clusters(count=3, min_size=2)), samix.SAMixC),
        (Plain(), None),
    ],
    ids=["samix-i", "samix-c", "plain"],
)
def test_value_pretrainings(mixup, kind, tmp_path):
    recipe = Pretraining(
        data=Data(size=16, train_pictures=24, test_pictures=12),
        encoder=Network(width=4),
        method=MoCoV2(queue=20, dim=8, hidden=16),
        mixup=mixup,
        machine=Machine(accelerator="cpu"),
        epochs=1,
        batch_size=8,
    )
    train(recipe, tmp_path, name="tiny/ssl", quiet=True)
    model = samix.load_model(tmp_path) if kind is None else kind.load(tmp_path)
    saved = torch.load(tmp_path / "last.ckpt", weights_only=True)["model"]
    assert all(torch.equal(value, saved[name]) for name, value in model.state_dict().items())
    with pytest.raises(ValueError, match=f"holds a {type(model).__name__}, not a SAMix. `samix.load_model`"):
        samix.SAMix.load(tmp_path)


def test_value_any_run_with_labels(tiny, tmp_path):
    train(replace(tiny("cutmix"), epochs=1), tmp_path, name="tiny/cutmix", quiet=True)
    assert isinstance(samix.load_model(tmp_path), samix.Mixing)
    with pytest.raises(ValueError, match="holds a Mixing, not a SAMix"):
        samix.SAMix.load(tmp_path)


def test_error_folders_without_a_model(tmp_path, write_run):
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        samix.SAMix.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="no checkpoint yet"):
        samix.SAMix.load(write_run())
