"""samix train NAME --dry-run: what it prints, what it keeps, and what it leaves alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from samix.commands.dry_run import dry_run, mixer_in_place
from samix.commands.pace import read_pace
from samix.engine.pretrained import PretrainedMixup
from samix.recipes import find_recipe


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A cache and a folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_value_a_dry_run_prints_size_memory_and_time(call):
    out = call("train", "cifar10-small/samix", "--dry-run")
    assert "cifar10-small/samix: two steps of 4 pictures of 32 px, loss " in out
    assert "mixer" in out and "pictures/s on this machine" in out and "150 epochs" in out
    assert list(read_pace()) == ["cifar10-small/samix"]
    assert not Path("runs").exists()


def test_value_other_fields_are_rehearsed_and_not_remembered(call):
    out = call("train", "cifar10-small/plain", "--dry-run", "--data.size", "16", "--epochs", "3")
    assert "pictures of 16 px" in out and "3 epochs" in out
    assert read_pace() == {}


def test_value_pre_trainings_are_rehearsed(call):
    assert "head" in call("pretrain", "ssl-small/moco-v2+samix-c", "--dry-run")


def test_value_pictures_of_ones_own_have_no_known_number(call):
    out = call("train", "folder/plain", "--dry-run", "--data.size", "32")
    assert "unknown: nobody said how many pictures folder has" in out
    assert "(The weights 'lite0' are not read: the network stays random.)" in out


def test_value_an_untrained_mixer_takes_the_place_of_a_missing_one(capsys):
    _, recipe = find_recipe("cifar10-small/plain")
    mixup = PretrainedMixup(mixer="runs/cifar10-small/samix/0")
    with mixer_in_place(replace(recipe, mixup=mixup)) as ready:
        assert (Path(ready.mixup.mixer) / "mixer.safetensors").is_file()
        dry_run("cifar10-small/samix-p", ready)
    assert "(There is no runs/cifar10-small/samix/0 yet" in capsys.readouterr().out
    assert not Path(ready.mixup.mixer).exists()


@pytest.mark.parametrize("mixer", [None, "tiny"])
def test_value_a_mixer_that_is_there_stays(mixer):
    recipe = replace(find_recipe("cifar10-small/plain")[1], mixup=PretrainedMixup(mixer=mixer))
    with mixer_in_place(recipe) as ready:
        assert ready is recipe


def test_error_a_mixer_of_ones_own_must_be_there():
    recipe = replace(
        find_recipe("cifar10-small/plain")[1], mixup=PretrainedMixup(mixer="my/mixer.safetensors")
    )
    with pytest.raises(FileNotFoundError, match=r"there is no Mixer at my/mixer.safetensors"):
        dry_run("cifar10-small/samix-p", recipe)
