"""Mixers by name, from runs and files, in recipes; and what is none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import samix
from samix.core.pairing import Pairing
from samix.core.shapes import Stats
from samix.engine.export import export_weights
from samix.engine.pretrained import PretrainedMixup
from samix.engine.pretraining import Pretraining
from samix.methods.ssl import MoCoV2
from samix.runs import mixers
from samix.runs.exporting import export_mixer
from samix.runs.mixers import find_mixer, load_mixer, shipped_mixers

STATS = Stats((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


@pytest.fixture
def shipped(finished, tmp_path, monkeypatch) -> Path:
    """A package folder with two Mixers."""
    folder = tmp_path / "package"
    for name in ("tiny", "photos"):
        export_mixer(finished, folder / f"{name}.safetensors", half=True)
    monkeypatch.setattr(mixers, "SHIPPED", folder)
    return folder


def test_value_shipped_mixers_are_the_files_of_the_folder(shipped):
    assert list(shipped_mixers()) == ["photos", "tiny"]
    assert find_mixer() == find_mixer("tiny") == shipped / "tiny.safetensors"
    mix = samix.Mix(samix.load_mixer(), classes=12)
    assert mix(torch.rand(4, 3, 16, 16), torch.arange(4))[1].shape == (4, 12)


def test_invariant_what_is_shipped_can_be_loaded():
    for name, path in shipped_mixers().items():
        assert path.with_suffix(".md").is_file(), f"{name} has no card"
        try:
            load_mixer(name)
        except ModuleNotFoundError as error:
            pytest.skip(str(error))


def test_value_a_folder_of_a_shipped_name_is_reached_by_its_path(shipped, finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").symlink_to(finished)
    assert find_mixer("tiny") == shipped / "tiny.safetensors"
    assert find_mixer("./tiny").parent == find_mixer(Path("tiny")).parent == Path("tiny")


def test_error_unknown_names(shipped, monkeypatch):
    monkeypatch.chdir(shipped)
    with pytest.raises(
        FileNotFoundError, match=r"unknown Mixer 'tinny'. Did you mean 'tiny'\? Available: photos, ti"
    ):
        load_mixer("tinny")
    with pytest.raises(
        FileNotFoundError, match=r"Or name a run folder .*checkpoint \(.pth\) or hf://owner/name"
    ):
        load_mixer("nothing")
    with pytest.raises(FileNotFoundError, match=r"there is no Mixer at \.\./tiny\.safetensors"):
        load_mixer("../tiny.safetensors")


def test_error_nothing_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(mixers, "SHIPPED", tmp_path)
    with pytest.raises(FileNotFoundError, match="comes without the Mixer 'tiny', so name one: a run folder"):
        samix.load_mixer()
    with pytest.raises(FileNotFoundError, match="there is no Mixer at photos: expected a run folder"):
        load_mixer("photos")


def test_value_the_mixer_of_a_run_paints_what_the_run_painted(tiny, tmp_path):
    recipe = tiny()
    model, index = recipe.build(3).eval(), torch.tensor([1, 2, 0])
    export_weights(tmp_path, recipe, model, ("a", "b", "c"), STATS)
    x, pairing = torch.rand(3, 3, 16, 16), Pairing(torch.tensor([0.2, 0.5, 0.7]), index)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in STATS)
    with torch.no_grad():
        expected = model.paint(model.maps((x - mean) / std), pairing, (16, 16))
    for source in (tmp_path, tmp_path / "mixer.safetensors", str(tmp_path)):
        torch.testing.assert_close(load_mixer(source).painter(x, pairing, (16, 16)), expected)
    assert samix.load_mixer(tmp_path).needs == ("pixels",)


@pytest.mark.parametrize("mixup", ["train", "pretrain"])
def test_value_a_frozen_mixer_in_a_recipe(tiny, tmp_path, mixup):
    recipe = tiny()
    export_weights(tmp_path, recipe, recipe.build(3), ("a", "b", "c"), STATS)
    settings = PretrainedMixup(mixer=str(tmp_path), alpha=1.5)
    x, y = torch.rand(4, 3, 16, 16), torch.tensor([0, 1, 2, 0])
    if mixup == "train":
        model, inputs = replace(recipe, mixup=settings).build(3, STATS), (x, y)
    else:
        method = MoCoV2(queue=8, dim=4, hidden=8)
        plain = Pretraining(data=recipe.data, encoder=recipe.encoder, method=method, batch_size=8)
        model, inputs = replace(plain, mixup=settings).build(8, STATS), (torch.cat([x, x.flip(3)]), y)
    losses = model(*inputs, 0.5)
    assert model.policy.alpha == 1.5 and model.policy.adjusting.rule == "shift"
    assert losses.mixer is None and losses.encoder.requires_grad and losses.lam.shape == (4,)
    assert "mixer" not in model.parameter_groups()
    assert not any("painter" in name for name in model.state_dict())


def test_value_a_recipe_that_names_no_mixer_takes_tiny(tiny, shipped):
    model = replace(tiny(), mixup=PretrainedMixup()).build(3, STATS)
    expected = load_mixer("tiny").painter.state_dict()
    painted = model.policy.painter.state_dict()
    assert all(torch.equal(value, painted[name]) for name, value in expected.items())


def test_value_a_recipe_decides_how_closely_a_mixer_looks(tiny, shipped):
    assert replace(tiny(), mixup=PretrainedMixup(size=24)).build(3, STATS).policy.painter.size == 24
    with pytest.raises(ValueError, match=r"mixup.size must be at least 8, got 4"):
        PretrainedMixup(size=4)


def test_error_what_is_no_mixer(finished, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no Mixer at .*nothing: expected a run folder"):
        load_mixer(tmp_path / "nothing")
    with pytest.raises(ValueError, match="is neither of an encoder nor of a Mixer"):
        load_mixer(finished / "encoder.safetensors")
    torch.save({"mixer.weight": torch.zeros(1)}, tmp_path / "pickle.pt")
    with pytest.raises(ValueError, match="is not a readable safetensors file but a pickle, and no official"):
        load_mixer(tmp_path / "pickle.pt")


class Evil:
    """A pickle that would run code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("zipped", [True, False])
def test_error_pickles_are_not_run(tmp_path, zipped):
    torch.save(
        {"state_dict": Evil(tmp_path / "ran")}, tmp_path / "e.pth", _use_new_zipfile_serialization=zipped
    )
    with pytest.raises(ValueError, match="e.pth holds Python objects .pickle., which could run code"):
        load_mixer(tmp_path / "e.pth")
    assert not (tmp_path / "ran").exists()


def test_invariant_loading_draws_nothing_from_the_callers_generator(finished):
    before = torch.get_rng_state()
    load_mixer(finished)
    assert torch.equal(torch.get_rng_state(), before)
