"""Which recipes may go on from which checkpoint."""

import warnings
from dataclasses import replace

import pytest
import torch
from lightning_fabric.plugins.precision import MixedPrecision, Precision

from samix.data.datasets import Data, ImageSet, load_data
from samix.engine import loop
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer, build_optimizer
from samix.engine.recipe import to_dict
from samix.engine.resume import resume, snapshot
from samix.engine.training import POLICIES
from samix.learned import MomentumCopy, Speed
from samix.runs.checkpoint import load_checkpoint, save_checkpoint
from samix.runs.settings import comparable

SPLIT = load_data(Data(size=16, train_pictures=24, test_pictures=12))
"""The pictures of the tiny recipe."""


@pytest.fixture
def built(tiny):
    model = tiny().build(12)
    return model, build_optimizer(model.parameter_groups(), tiny().optimizer), Precision()


def test_value_an_empty_folder_starts_at_zero(tiny, built, tmp_path):
    assert resume(tiny(), tmp_path, SPLIT, *built) == 0


def test_value_model_and_optimizer_come_back(tiny, built, tmp_path):
    model, optimizer, precision = built
    model(torch.randn(6, 3, 16, 16), torch.arange(6)).total.backward()
    optimizer.step()
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, model, optimizer, precision, 5))
    fresh = tiny().build(12)
    other = build_optimizer(fresh.parameter_groups(), tiny().optimizer)
    assert resume(tiny(), tmp_path, SPLIT, fresh, other, precision) == 5
    for name, value in model.state_dict().items():
        assert torch.equal(value, fresh.state_dict()[name])
    assert len(other.state) == len(optimizer.state) > 0
    for mine, theirs in zip(optimizer.state.values(), other.state.values(), strict=True):
        assert torch.equal(mine["momentum_buffer"], theirs["momentum_buffer"])


@pytest.mark.parametrize(
    "change",
    [
        {"machine": Machine(threads=3, channels_last=False, compile=True)},
        {"eval_every": 3},
        {"save_every": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_value_what_a_resumed_run_may_change(change, tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    with warnings.catch_warnings(action="error"):
        assert resume(tiny(**change), tmp_path, SPLIT, *built) == 5


@pytest.mark.parametrize("name", ["devices", "nodes"])
def test_value_other_devices_are_named_and_allowed(name, tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    moved = tiny(machine=Machine(**{name: 3}))
    words = rf"goes on with other devices \(machine.{name}: there 1, here 3\).*not be bit-equal"
    with pytest.warns(UserWarning, match=words) as caught:
        assert resume(moved, tmp_path, SPLIT, *built) == 5
    assert len(caught) == 1


def test_value_a_finished_run_does_not_go_on_with_other_devices(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 12))
    with warnings.catch_warnings(action="error"):
        assert resume(tiny(machine=Machine(devices=3)), tmp_path, SPLIT, *built) == 12


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (Machine(precision="bf16-mixed"), "machine.precision: there 32-true, here bf16-mixed"),
        (Machine(accumulate=3, devices=1), "machine.accumulate: there 1, here 3"),
    ],
)
def test_error_a_machine_that_learns_otherwise(machine, words, tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    with pytest.raises(ValueError, match=words):
        resume(tiny(machine=machine), tmp_path, SPLIT, *built)


def test_value_checkpoints_of_older_versions_say_nothing_of_the_machine(tiny, built, tmp_path):
    kept = snapshot(tiny(), SPLIT, *built, 5)
    del kept["recipe"]["machine"]
    save_checkpoint(tmp_path, kept)
    assert resume(tiny(machine=Machine(precision="bf16-mixed")), tmp_path, SPLIT, *built) == 5


@pytest.mark.parametrize("mixup", ["samix", "automix"])
def test_value_a_checkpoint_with_old_names_of_settings_goes_on(mixup, tiny, tmp_path, as_before):
    recipe = tiny(mixup=replace(POLICIES[mixup](), copy=MomentumCopy(momentum=0.5)))
    model = recipe.build(12)
    built = model, build_optimizer(model.parameter_groups(), recipe.optimizer), Precision()
    kept = snapshot(recipe, SPLIT, *built, 5)
    save_checkpoint(tmp_path, kept | {"recipe": as_before(kept["recipe"])})
    assert load_checkpoint(tmp_path)["recipe"]["mixup"]["momentum"] == 0.5
    with warnings.catch_warnings(action="error"):
        assert resume(recipe, tmp_path, SPLIT, *built) == 5
    other = replace(recipe, mixup=replace(recipe.mixup, speed=Speed(fraction=0.25)))
    with pytest.raises(ValueError, match=r"recipe: mixup\.speed\.fraction: there 1\.0, here 0\.25\. Choose"):
        resume(other, tmp_path, SPLIT, *built)


def test_value_data_may_move(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    moved = replace(tiny().data, workers=2)
    assert resume(tiny(data=moved), tmp_path, SPLIT, *built) == 5


def test_error_another_recipe_names_each_field(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    other = tiny("cutmix", batch_size=8)
    with pytest.raises(ValueError) as caught:
        resume(other, tmp_path, SPLIT, *built)
    text = str(caught.value)
    for words in (
        "batch_size: there 6, here 8",
        "mixup.name: there samix, here cutmix",
        str(tmp_path),
        "--out",
    ):
        assert words in text


def test_value_a_recipe_is_the_same_after_a_trip_through_a_file(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 0))
    assert load_checkpoint(tmp_path)["recipe"] == comparable(to_dict(tiny()))


def test_value_the_scale_of_float16_losses_comes_back(tiny, built, tmp_path):
    model, optimizer, _ = built
    used, fresh = (MixedPrecision("16-mixed", "cpu", torch.amp.GradScaler("cpu")) for _ in range(2))
    used.scaler.scale(torch.ones(()))  # the first use sets the scale up
    used.scaler.update(512.0)
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, model, optimizer, used, 5))
    resume(tiny(), tmp_path, SPLIT, model, optimizer, fresh)
    assert fresh.scaler.get_scale() == 512.0


def test_error_other_pictures(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    images = SPLIT.train
    fewer = SPLIT._replace(train=ImageSet(images.pictures[:20], images.labels[:20], images.classes))
    with pytest.raises(ValueError, match=r"other training pictures: count: there 24, here 20.*--data.root"):
        resume(tiny(), tmp_path, fewer, *built)
    renamed = SPLIT._replace(train=images._replace(classes=("a", *images.classes[1:])))
    with pytest.raises(ValueError, match="other training pictures: classes"):
        resume(tiny(), tmp_path, renamed, *built)


def test_value_more_epochs_are_allowed_and_named(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 12))
    words = r"goes on behind epoch 3 to epoch 6 instead of 3: .* at 50% of their new length"
    with pytest.warns(UserWarning, match=words) as caught:
        assert resume(tiny(epochs=6), tmp_path, SPLIT, *built) == 12
    assert len(caught) == 1


def test_value_fewer_epochs_than_planned_but_more_than_done(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(epochs=9), SPLIT, *built, 4))
    with pytest.warns(UserWarning, match="behind epoch 1 to epoch 3 instead of 9"):
        assert resume(tiny(), tmp_path, SPLIT, *built) == 4


@pytest.mark.parametrize("epochs", [1, 2])
def test_error_fewer_epochs_than_are_done(epochs, tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 8))
    with pytest.raises(ValueError, match=rf"has 2 of 3 epochs behind it, and epochs is {epochs}: ask"):
        resume(tiny(epochs=epochs), tmp_path, SPLIT, *built)


def test_error_a_long_list_of_differences_is_cut(tiny, built, tmp_path):
    save_checkpoint(tmp_path, snapshot(tiny(), SPLIT, *built, 5))
    changes = {
        "epochs": 9,
        "batch_size": 8,
        "seed": 4,
        "optimizer": Optimizer(lr=1.0, momentum=0.5, clip=1.0),
    }
    with pytest.raises(ValueError, match="and 1 more"):
        resume(tiny(**changes), tmp_path, SPLIT, *built)


def test_value_a_resumed_run_sums_up_like_one_that_never_stopped(
    tiny, tmp_path, finished, read_json, capsys, short_retention, monkeypatch
):
    def stop(folder, state):
        save_checkpoint(folder, state)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "save_checkpoint", stop)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            loop.train(tiny(), tmp_path / "run", name="tiny/samix", command="samix train tiny/samix")
    assert f"{tmp_path / 'run'}: goes on after epoch 1 of 3\n" in capsys.readouterr().out
    monkeypatch.undo()
    loop.train(tiny(), tmp_path / "run", name="tiny/samix", command="samix train tiny/samix", quiet=True)
    found, expected = (read_json(path / "summary.json") for path in (tmp_path / "run", finished))
    measured = ("seconds", "images_per_s", "peak_mb", "commit")
    assert {**found, **dict.fromkeys(measured)} == {**expected, **dict.fromkeys(measured)}
    assert capsys.readouterr().out == "", "quiet"
