"""Training runs: what they leave behind, that they repeat, go on and stop as they should."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml
from lightning_fabric import Fabric
from torch import Tensor, nn

from samix.contract import Losses
from samix.data.datasets import load_data
from samix.engine import loop, summary
from samix.engine.loop import is_due, train
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.recipe import to_dict
from samix.engine.setup import make_fabric, prepare
from samix.engine.step import NonFiniteLossError
from samix.engine.tasks import task_of
from samix.learned import Speed
from samix.learned.mixer import MixerConfig
from samix.learned.watch import CollapsedMixerWarning
from samix.methods.supervised import Objective
from samix.runs.checkpoint import load_checkpoint, save_checkpoint
from samix.runs.records import read_metrics
from samix.runs.settings import comparable

pytestmark = pytest.mark.usefixtures("short_retention")

STEPS = 4
"""Steps of an epoch of the tiny recipe."""


class Interrupted(Exception):
    """Stands for a power cut."""


def go(recipe, folder):
    return train(recipe, folder, name=f"tiny/{folder.name}", quiet=True)


def stop_at(monkeypatch, last: int) -> None:
    """Cuts the next run off right after the optimizer's step number `last`."""

    def check(losses: Losses, step: int, epoch: int) -> None:
        if step == last:
            raise Interrupted

    monkeypatch.setattr(loop, "check_finite", check)


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# ------------------------------------------------------------ the run folder


def test_value_run_folder(finished, read_json):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        "config.yaml", "run.json", "metrics.csv", "last.ckpt", "encoder.safetensors", "mixer.safetensors",
        "config.json", "classifier", "samples.npz", "retention.csv", "summary.json", ".lock",
    }  # fmt: skip
    rows = read_metrics(finished, 99)
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    for column in ("loss", "mixer", "local", "globally", "mask", "gamma", "gap", "deviation", "top1"):
        assert all(column in row for row in rows), column
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)


def test_value_config_is_the_resolved_recipe(finished, tiny):
    assert yaml.safe_load((finished / "config.yaml").read_text()) == to_dict(tiny())


def test_value_summary(finished, read_json):
    summary, rows = read_json(finished / "summary.json"), read_metrics(finished, 99)
    top1 = [row["top1"] for row in rows]
    assert summary["top1"] == pytest.approx(np.median(top1), abs=1e-3)
    assert summary["best"] == pytest.approx(max(top1), abs=1e-3)
    assert summary["last"] == pytest.approx(top1[-1], abs=1e-3)
    assert summary["recipe"] == "tiny/samix" and summary["mixup"] == "samix"
    assert summary["command"] == "samix train tiny/samix"
    assert summary["seconds"] > 0 and summary["images_per_s"] > 0 and summary["peak_mb"] > 0
    assert set(summary["versions"]) == {"samix", "torch", "python"}
    assert set(summary["heads"]) == {"mix_q", "mix_k"}
    start = read_json(finished / "run.json")
    assert start["name"] == "tiny/samix" and start["command"] == "samix train tiny/samix"
    for name, count in (("train_pictures", 24), ("test_pictures", 12)):
        assert start[name] == summary[name] == count
    assert start["commit"] == summary["commit"]


def test_value_samples(finished, tmp_path, tiny):
    with np.load(finished / "samples.npz") as arrays:
        count = len(arrays["first"])
        assert arrays["masks"].shape == (11, count, 1, 16, 16)
        assert arrays["mixed"].shape == (11, count, 3, 16, 16) and arrays["mixed"].dtype == np.uint8
        assert np.array_equal(arrays["mixed"][-1], arrays["first"])
        assert np.array_equal(arrays["mixed"][0], arrays["partner"])
        means = arrays["masks"].mean(axis=(1, 2, 3, 4))
        np.testing.assert_allclose(means, arrays["lams"], atol=0.02)


@pytest.mark.parametrize("policy", ["plain", "mixup", "cutmix"])
def test_value_other_policies(policy, tiny, tmp_path, read_json):
    summary = go(tiny(policy, epochs=1), tmp_path)
    assert summary["mixup"] == policy
    assert not (tmp_path / "mixer.safetensors").exists()
    assert (tmp_path / "retention.csv").exists() == (policy != "plain")
    with np.load(tmp_path / "samples.npz") as arrays:
        assert ("masks" in arrays) == (policy != "plain")


def test_value_training_learns(tiny, tmp_path):
    recipe = tiny("plain", epochs=25, eval_every=25, save_every=25, optimizer=Optimizer(lr=0.05))
    recipe = replace(recipe, data=replace(recipe.data, view="none"))
    go(recipe, tmp_path)
    rows = read_metrics(tmp_path, 99)
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]


# ------------------------------------------------------------ repeating and going on


def test_value_the_seed_decides_everything(tiny, finished, tmp_path, weights):
    go(tiny(), tmp_path / "again")
    assert same(weights(finished), weights(tmp_path / "again"))
    go(tiny(seed=1), tmp_path / "other")
    assert not same(weights(finished), weights(tmp_path / "other"))


def test_value_testing_more_often_leaves_no_trace_in_the_result(tiny, tmp_path, weights):
    recipe = tiny(epochs=12, batch_size=24, save_every=12)
    go(replace(recipe, eval_every=1), tmp_path / "often")
    go(replace(recipe, eval_every=12), tmp_path / "seldom")
    assert same(weights(tmp_path / "often"), weights(tmp_path / "seldom"))


@pytest.mark.parametrize(("policy", "workers"), [("plain", 0), ("cutmix", 0), ("samix", 0), ("samix", 1)])
def test_value_an_interrupted_run_ends_like_one_that_was_not(
    policy, workers, tiny, finished, tmp_path, weights, monkeypatch
):
    whole, recipe = finished, tiny(policy)
    if policy != "samix":
        whole = tmp_path / "whole"
        go(recipe, whole)
    recipe = replace(recipe, data=replace(recipe.data, workers=workers))
    with monkeypatch.context() as patch:
        stop_at(patch, STEPS + 1)
        with pytest.raises(Interrupted):
            go(recipe, tmp_path / "cut")
    assert torch.load(tmp_path / "cut" / "last.ckpt", weights_only=True)["step"] == STEPS
    go(recipe, tmp_path / "cut")
    assert same(weights(whole), weights(tmp_path / "cut"))


def test_value_an_interrupted_run_whose_mixer_reads_online_maps(tiny, tmp_path, weights, monkeypatch):
    mixup = replace(tiny().mixup, speed=Speed(online_maps=True))
    recipe = tiny(mixup=mixup, objective=Objective(clean_weight=1.0), epochs=2)
    go(recipe, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, STEPS + 1)
        with pytest.raises(Interrupted):
            go(recipe, tmp_path / "cut")
    go(recipe, tmp_path / "cut")
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_value_the_optimizers_state_comes_back_to_where_the_weights_are(tiny, tmp_path, monkeypatch):
    """A device of another type stands for a GPU: what is moved there becomes float64."""
    recipe = tiny()
    go(replace(recipe, epochs=1), tmp_path / "done")
    kept = load_checkpoint(tmp_path / "done")
    save_checkpoint(tmp_path, kept | {"recipe": comparable(to_dict(recipe))})
    monkeypatch.setattr(Fabric, "to_device", lambda self, module: module.double())
    fabric = make_fabric(recipe)
    fabric.launch()
    trainee = prepare(fabric, recipe, tmp_path, task_of(recipe), load_data(recipe.data))
    assert trainee.start == STEPS
    states = [state["momentum_buffer"] for state in trainee.optimizer.state.values()]
    assert len(states) > 10
    assert {state.dtype for state in states} == {torch.float64}


def test_value_rows_of_undone_work_are_dropped(tiny, tmp_path, monkeypatch):
    recipe = tiny("cutmix", epochs=4, save_every=2)
    go(recipe, tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 3 * STEPS + 1)
        with pytest.raises(Interrupted):
            go(recipe, tmp_path / "cut")
    assert [row["epoch"] for row in read_metrics(tmp_path / "cut", 99)] == [1, 2, 3]
    go(recipe, tmp_path / "cut")
    rows, expected = (read_metrics(tmp_path / name, 99) for name in ("cut", "whole"))
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    for name in ("loss", "top1", "ece"):
        assert [row[name] for row in rows] == [row[name] for row in expected]
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)


def test_value_a_finished_run_stays_as_it_is(tiny, tmp_path, weights, read_json):
    first = go(tiny(), tmp_path)
    before = weights(tmp_path)
    again = go(tiny(), tmp_path)
    assert same(before, weights(tmp_path))
    for name in ("top1", "best", "last", "seconds", "images_per_s"):
        assert again[name] == pytest.approx(first[name], rel=1e-4)


@pytest.mark.parametrize("summed_up", [True, False])
def test_value_a_trained_run_keeps_its_settings(summed_up, tiny, tmp_path):
    go(tiny("plain"), tmp_path)
    if not summed_up:
        (tmp_path / "summary.json").unlink()
    before = {name: (tmp_path / name).read_text() for name in ("config.yaml", "run.json")}
    machine = Machine(accelerator="cpu", channels_last=False)
    train(tiny("plain", machine=machine), tmp_path, name="other/name", command="another", quiet=True)
    assert before == {name: (tmp_path / name).read_text() for name in before}
    assert (tmp_path / "summary.json").exists()


def test_value_a_run_that_starts_anew_is_not_finished(tiny, tmp_path, monkeypatch):
    """As after an unreadable checkpoint, which one is told to remove."""
    go(tiny("plain"), tmp_path)
    (tmp_path / "last.ckpt").unlink()
    with monkeypatch.context() as patch:
        stop_at(patch, 0)
        with pytest.raises(Interrupted):
            go(tiny("cutmix"), tmp_path)
    assert not (tmp_path / "summary.json").exists()
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["mixup"]["name"] == "cutmix"


def test_value_the_commit_is_that_of_the_start(tiny, tmp_path, monkeypatch, read_json):
    def at(commit: str) -> None:
        monkeypatch.setattr(summary, "commit", lambda: commit)

    at("a")
    with monkeypatch.context() as patch:
        stop_at(patch, STEPS)
        with pytest.raises(Interrupted):
            go(tiny("plain"), tmp_path)
    assert read_json(tmp_path / "run.json")["commit"] == "a"
    at("b")
    with monkeypatch.context() as patch:
        # Somebody commits while the run goes on.
        patch.setattr(loop, "check_finite", lambda losses, step, epoch: at("c"))
        assert go(tiny("plain"), tmp_path)["commit"] == "a+b"
    assert read_json(tmp_path / "summary.json")["commit"] == "a+b"


def test_error_the_rows_of_a_trained_run_are_lost(tiny, tmp_path):
    go(tiny("plain"), tmp_path)
    (tmp_path / "summary.json").unlink()
    assert go(tiny("plain"), tmp_path)["epochs"] == 3  # of the rows and the checkpoint
    for name in ("summary.json", "metrics.csv"):
        (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=r"its metrics\.csv lacks the last epoch.*train again"):
        go(tiny("plain"), tmp_path)


def test_error_checkpoint_of_another_recipe(tiny, finished):
    before = (finished / "last.ckpt").read_bytes()
    other = tiny(epochs=5, optimizer=Optimizer(lr=0.2))
    with pytest.raises(ValueError) as caught:
        go(other, finished)
    text = str(caught.value)
    assert "another recipe" in text and "--out" in text
    assert "epochs: there 3, here 5" in text and "optimizer.lr: there 0.1, here 0.2" in text
    assert (finished / "last.ckpt").read_bytes() == before


# ------------------------------------------------------------ more epochs than were asked for at first


def test_value_more_epochs_go_on_from_the_last_step(tiny, tmp_path, read_json, monkeypatch):
    go(tiny(epochs=2), tmp_path)
    before, steps, original = read_metrics(tmp_path, 99), [], loop.check_finite

    def see(losses: Losses, step: int, epoch: int) -> None:
        assert not (tmp_path / "summary.json").exists()  # it would call the run finished
        steps.append(step)
        original(losses, step, epoch)

    monkeypatch.setattr(loop, "check_finite", see)
    with pytest.warns(UserWarning, match="behind epoch 2 to epoch 4 instead of 2"):
        summary = go(tiny(epochs=4), tmp_path)
    assert steps == list(range(2 * STEPS, 4 * STEPS))
    rows = read_metrics(tmp_path, 99)
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4] and rows[:2] == before
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    assert summary["epochs"] == 4 and read_json(tmp_path / "summary.json")["epochs"] == 4
    assert summary["last"] == pytest.approx(rows[-1]["top1"], rel=1e-4)
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["epochs"] == 4
    kept = load_checkpoint(tmp_path)
    assert kept["step"] == 4 * STEPS and kept["recipe"]["epochs"] == 4
    assert go(tiny(epochs=4), tmp_path)["epochs"] == 4 and len(steps) == 2 * STEPS


def test_value_a_longer_run_that_is_cut_off_ends_like_one_that_is_not(tiny, tmp_path, weights, monkeypatch):
    for name in ("whole", "cut"):
        go(tiny(epochs=1), tmp_path / name)
    with pytest.warns(UserWarning, match="to epoch 3 instead of 1"):
        go(tiny(epochs=3), tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="to epoch 3 instead of 1"):
        stop_at(patch, 2 * STEPS + 1)
        with pytest.raises(Interrupted):
            go(tiny(epochs=3), tmp_path / "cut")
    go(tiny(epochs=3), tmp_path / "cut")
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_value_asked_for_more_epochs_and_then_for_the_first_ones_again(tiny, tmp_path, weights, monkeypatch):
    go(tiny("plain", epochs=2), tmp_path)
    before = weights(tmp_path)
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="instead of 2"):
        stop_at(patch, 2 * STEPS)
        with pytest.raises(Interrupted):
            go(tiny("plain", epochs=4), tmp_path)
    assert go(tiny("plain", epochs=2), tmp_path)["epochs"] == 2
    assert same(before, weights(tmp_path))
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["epochs"] == 2


def test_error_fewer_epochs_than_are_done(tiny, finished):
    with pytest.raises(ValueError, match="has 3 of 3 epochs behind it, and epochs is 2"):
        go(tiny(epochs=2), finished)
    assert (finished / "summary.json").exists()


# ------------------------------------------------------------ losses that are not finite


def spoil(monkeypatch, when: int) -> None:
    """Makes the loss of step `when` NaN, after the optimizer's step as in real life."""
    original, steps = loop.train_step, []

    def step(*words):
        losses = original(*words)
        steps.append(None)
        return losses._replace(encoder=losses.encoder * float("nan")) if len(steps) == when + 1 else losses

    monkeypatch.setattr(loop, "train_step", step)


def test_error_nan_stops_with_step_and_lam_and_keeps_the_checkpoint(tiny, tmp_path, monkeypatch, weights):
    with monkeypatch.context() as patch:
        spoil(patch, STEPS + 2)
        with pytest.raises(NonFiniteLossError) as caught:
            go(tiny(), tmp_path)
    text = str(caught.value)
    for words in (
        f"step {STEPS + 2}",
        "epoch 2",
        "lam 0.",
        "encoder nan",
        "--optimizer.lr",
        "--optimizer.clip",
    ):
        assert words in text, words
    kept = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert kept["step"] == STEPS
    assert all(value.isfinite().all() for value in weights(tmp_path).values())
    assert go(tiny(), tmp_path)["epochs"] == 3  # and it goes on from there


def test_error_a_learning_rate_that_is_far_too_large(tiny, tmp_path):
    with pytest.raises(NonFiniteLossError, match="the loss is not finite at step"):
        go(tiny("plain", optimizer=Optimizer(lr=1e38)), tmp_path)
    assert not (tmp_path / "last.ckpt").exists()


def test_error_clipping_does_not_hide_where_the_loss_went(tiny, tmp_path):
    with pytest.raises(NonFiniteLossError, match="the loss is not finite at step"):
        go(tiny("mixup", optimizer=Optimizer(lr=1e38, clip=5.0)), tmp_path)


def test_error_weights_that_blow_up_in_an_epochs_last_step_do_not_reach_the_checkpoint(tiny, tmp_path):
    with pytest.raises(NonFiniteLossError):
        go(tiny("plain", batch_size=24, optimizer=Optimizer(lr=1e38)), tmp_path)
    assert not (tmp_path / "last.ckpt").exists()


# ------------------------------------------------------------ machines and objectives


@pytest.mark.parametrize("policy", ["plain", "samix"])
def test_value_bf16_trains(policy, tiny, tmp_path):
    recipe = tiny(policy, epochs=1, machine=Machine(accelerator="cpu", precision="bf16-mixed"))
    go(recipe, tmp_path)
    model = torch.load(tmp_path / "last.ckpt", weights_only=True)["model"]
    assert all(value.dtype in (torch.float32, torch.int64) for value in model.values())
    assert all(value.isfinite().all() for value in model.values())


def test_value_clean_branch_with_its_own_head(tiny, tmp_path, read_json):
    go(tiny(objective=Objective(clean_weight=1.0), epochs=1), tmp_path)
    heads = read_json(tmp_path / "summary.json")["heads"]
    assert list(heads) == ["mix_q", "one_q", "mix_k", "one_k"]


def test_value_due():
    assert [epoch for epoch in range(1, 21) if is_due(epoch, 6, 20, last=3)] == [6, 12, 18, 19, 20]


def test_value_layout_and_threads(tiny, tmp_path):
    before = torch.get_num_threads()
    machine = Machine(accelerator="cpu", threads=1, channels_last=False)
    go(tiny("plain", epochs=1, machine=machine), tmp_path)
    assert torch.get_num_threads() == before == 1


def test_value_a_collapsed_mixer_is_noticed_while_it_trains(tiny, tmp_path):
    collapsed = replace(tiny().mixup, mixer=MixerConfig(init_std=0.0))
    with pytest.warns(CollapsedMixerWarning, match="trivial solution: for 5 epochs"):
        go(tiny(mixup=collapsed, epochs=5, batch_size=24), tmp_path)


@pytest.mark.slow
def test_value_a_compiled_run_trains_as_one_that_is_not(tiny, tmp_path, monkeypatch):
    """Traced and differentiated ahead of time, but not turned into machine code, which takes minutes."""
    backends, compile_module = [], nn.Module.compile

    def traced(network, *words, **options):
        backends.append(network)
        return compile_module(network, *words, backend="aot_eager", **options)

    monkeypatch.setattr(nn.Module, "compile", traced)
    losses = {}
    for compiled in (False, True):
        folder = tmp_path / str(compiled)
        go(tiny(epochs=1, machine=Machine(accelerator="cpu", compile=compiled)), folder)
        losses[compiled] = [(row["loss"], row["mixer"]) for row in read_metrics(folder, 99)]
    assert len(backends) == 1
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-3)
