"""Rows of a run in TensorBoard and W&B."""

import sys
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import get_args, get_type_hints

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from samix.engine.loop import train
from samix.engine.machine import Machine
from samix.engine.tracking import STARTERS, tracking
from samix.runs.records import read_metrics


def tracked(recipe, tracker):
    return replace(recipe, machine=replace(recipe.machine, tracker=tracker))


def scalars(folder, name):
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {event.step: event.value for event in events.Scalars(name)}


def stand_in_for_wandb(runs):
    """A module that notes what it is told, by the run's id; the real one would ask for an account."""

    @contextmanager
    def init(**words):
        run = runs.setdefault(words["id"], {"words": words, "rows": {}, "open": True})
        yield SimpleNamespace(log=lambda row, step: run["rows"].__setitem__(step, row))
        run["open"] = False

    module = ModuleType("wandb")
    module.init = init
    return module


def test_value_every_name_has_a_tracker():
    assert tuple(STARTERS) == get_args(get_type_hints(Machine)["tracker"])


def test_value_tensorboard_has_every_number_of_metrics(tiny, tmp_path):
    train(tracked(tiny("samix", epochs=2), "tensorboard"), tmp_path, name="tiny/samix", quiet=True)
    rows = read_metrics(tmp_path, last_epoch=2)
    assert len(rows) == 2
    for name in rows[-1].keys() - {"epoch"}:
        expected = {int(row["epoch"]): pytest.approx(row[name], rel=1e-4) for row in rows if name in row}
        assert scalars(tmp_path, name) == expected


def test_value_tensorboard_forgets_what_a_crash_undid(tiny, tmp_path):
    recipe = tracked(tiny("plain"), "tensorboard")
    with tracking(recipe, tmp_path, "tiny/plain", 0) as track:
        for epoch in (1.0, 2.0, 3.0):
            track({"epoch": epoch, "loss": 10.0})
    with tracking(recipe, tmp_path, "tiny/plain", 1) as track:  # the checkpoint of epoch 1 was the last
        track({"epoch": 2.0, "loss": 5.0})
    assert scalars(tmp_path, "loss") == {1: 10.0, 2: 5.0}


def test_value_wandb_goes_on_with_the_same_run(tiny, tmp_path, monkeypatch):
    runs = {}
    monkeypatch.setitem(sys.modules, "wandb", stand_in_for_wandb(runs))
    recipe = tracked(tiny("plain", epochs=2, seed=5), "wandb")
    train(recipe, tmp_path / "a", name="tiny/plain", quiet=True)
    with tracking(recipe, tmp_path / "a", "tiny/plain", 2) as track:
        track({"epoch": 3.0, "loss": 1.0})
    assert len(runs) == 1
    (run,) = runs.values()
    assert sorted(run["rows"]) == [1, 2, 3] and not run["open"]
    assert {"loss", "top1", "images_per_s"} <= set(run["rows"][2]) and "epoch" not in run["rows"][2]
    assert run["words"]["name"] == "tiny/plain seed 5" and run["words"]["resume"] == "allow"
    assert run["words"]["config"]["mixup"]["name"] == "plain"
    with tracking(recipe, tmp_path / "b", "tiny/plain", 0):
        assert len(runs) == 2, "another folder is another run"


@pytest.mark.parametrize(
    ("tracker", "module"), [("wandb", "wandb"), ("tensorboard", "torch.utils.tensorboard")]
)
def test_error_names_the_missing_package(tiny, tmp_path, monkeypatch, tracker, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"--machine.tracker {tracker} needs .*pip install {tracker}"):
        train(tracked(tiny("plain"), tracker), tmp_path, name="tiny/plain", quiet=True)
    assert not (tmp_path / "metrics.csv").exists()


def test_error_unknown_tracker(unchecked_shapes):
    with pytest.raises(ValueError, match="unknown machine.tracker 'tensorbord'.*tensorboard"):
        Machine(tracker="tensorbord")
