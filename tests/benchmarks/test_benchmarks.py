"""The benchmarks run and print what they promise; a step's work is pinned by counting operations."""

import functools
import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from samix.data import Data
from samix.engine.loop import train
from samix.engine.training import Training
from samix.learned.mixer import MixerConfig
from samix.learned.samix import LearnedMixup, SAMix
from samix.nn.zoo import Network

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # as for a script, so that they find what they share


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def steptime():
    return load("steptime")


@pytest.fixture(scope="module")
def work(steptime):
    """Operations of one step on 16 pictures, counted once for every row."""
    return functools.cache(lambda row: steptime.count_flops(steptime.make_step(steptime.ROWS[row], 16)))


@pytest.mark.parametrize("peak", ["given", pytest.param("measured", marks=pytest.mark.slow)])
def test_value_steptime_prints_json(steptime, capsys, monkeypatch, peak):
    if peak == "given":  # measuring it takes a process per row
        monkeypatch.setattr(steptime, "peak_of", lambda row, batch, threads: 500.0)
    steptime.main(["--rows", "samix", "--rounds", "1", "--batch", "4", "--threads", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["row"] for row in rows] == ["plain", "samix"]
    assert all(set(row) == {"row", "threads", "seconds", "ratio", "flops_ratio", "peak_mb"} for row in rows)
    assert rows[0]["ratio"] == rows[0]["flops_ratio"] == 1.0
    assert all(row["seconds"] > 0 and row["ratio"] > 0 and row["threads"] == 1 for row in rows)
    assert all(row["peak_mb"] > 100 for row in rows)


def test_value_steptime_has_the_rows_of_the_table(steptime):
    assert {"plain", "mixup", "cutmix", "automix", "samix", "samix-fast"} <= set(steptime.ROWS)


MOST_WORK = {
    "mixup": 1.0,
    "cutmix": 1.0,
    "automix": 2.94,
    "adautomix": 3.31,  # on an adversarial batch one more frozen forward (.33)
    "samix": 2.94,
    "samix-online-maps": 2.69,  # without the maps' own pass (.25)
    "samix-fast": 1.62,
    "samix-p": 1.05,  # its small encoder looks at pictures of 16 px, without gradients
    "samix-fast-one-head": 1.72,  # 6 of 16 pictures; of 64 it is 1.66
    "moco-v2+mixup": 1.76,
    "moco-v2+samix-i": 2.46,
    "moco-v2+samix-i-fast": 2.08,
    "moco-v2+samix-c": 2.46,
}
QUICK = ("mixup", "samix", "samix-online-maps", "samix-fast", "samix-p")


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=() if row in QUICK else pytest.mark.slow) for row in MOST_WORK]
)
def test_value_work_of_a_step(steptime, work, row):
    # Two encoder steps (2), maps without the last stage (.25), frozen forward and input gradient (.67). MoCo
    # itself is an encoder step and a forward (1.33), to which these add.
    assert work(row) / work(steptime.baseline(row)) <= MOST_WORK[row]


@pytest.mark.slow
def test_value_work_of_a_frozen_mixer_at_224_px(steptime):
    work = {row: steptime.count_flops(steptime.make_step(steptime.ROWS[row], 2)) for row in steptime.R50}
    assert 1.0 < work["samix-p-r50"] / work["plain-r50"] < 1.05
    assert work["samix-r50"] > 2 * work["plain-r50"]
    assert {steptime.baseline(row) for row in steptime.R50} == {"plain-r50"}


def test_error_unknown_row_is_refused(steptime, capsys):
    with pytest.raises(SystemExit):
        steptime.main(["--rows", "nomix"])
    assert "nomix" in capsys.readouterr().err


def test_value_interleave_times_every_row_in_every_round(steptime):
    calls = []
    steps = {name: lambda name=name: calls.append(name) for name in "abc"}
    times = steptime.interleave(steps, rounds=3)
    assert calls == list("abcbcacab")
    assert all(len(values) == 3 for values in times.values())


def test_value_loading_prints_json(capsys):
    load("loading").main(["--rounds", "1", "--block", "1", "--batch", "4", "--json"])
    tables = json.loads(capsys.readouterr().out)
    rows, pairs = tables["rows"], tables["pairs"]
    assert [row["workers"] for row in rows] == [0, 0, 1, 2]
    assert all(row["loading"] > 0 and row["training"] > 0 and row["share"] > 0 for row in rows)
    assert {(row["row"], row["size"]) for row in pairs} == {
        (name, size) for name in ("moco-v2", "small") for size in (32, 96)
    }
    assert all(row["loading"] > 0 and row["torchvision"] > 0 and row["ratio"] > 0 for row in pairs)


def test_value_mixups_prints_every_peer_beside_ours(monkeypatch, capsys):
    mixups = load("mixups")
    monkeypatch.setattr(mixups, "BATCHES", {32: 8, 224: 2})
    monkeypatch.setattr(
        "sys.argv", ["mixups.py", "--rows", "mixup", "fmix", "--sizes", "32", "--rounds", "1", "--json"]
    )
    mixups.main()
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {(row["row"], row["peer"]) for row in rows} >= {
        ("mixup", "timm"),
        ("mixup", "timm-clone"),
        ("mixup", "torchvision"),
        ("fmix", ""),
    }
    assert all(row["seconds"] > 0 and row["batch"] == 8 for row in rows)
    assert all((row["ratio"] is None) == (row["peer"] == "") for row in rows)


def test_value_steptime_compares_attentive_policies_with_their_own_network(steptime):
    assert steptime.baseline("transmix") == "plain-vit" and steptime.baseline("fmix") == "plain"
    for name in steptime.ROWS:
        theirs, own = steptime.ROWS[steptime.baseline(name)], steptime.ROWS[name]
        assert theirs.encoder == own.encoder


def test_value_mask_worth_compares_masks_for_the_same_pairs():
    mask_worth = load("mask_worth")
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 3),
    )
    model = SAMix.wrap(network, "1", 3, LearnedMixup(mixer=MixerConfig(init_std=0.5)), size=16)
    x, y = torch.randn(20, 3, 16, 16), torch.arange(20) % 3
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    rows = {row.masks: row for row in mask_worth.measure(model, x, y, batch=8, batches=3, seed=0)}
    assert list(rows) == ["learned", "adjusted", "swapped", "constant", "searched"]
    assert rows["learned"].gap > 0.02 > rows["searched"].gap
    assert max(rows[name].gap for name in ("adjusted", "swapped", "constant")) < 1e-4
    assert rows["constant"].deviation < 1e-6 < 0.01 < rows["searched"].deviation
    assert rows["searched"].local + 0.5 * rows["searched"].globally < (
        rows["constant"].local + 0.5 * rows["constant"].globally
    )
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())
    assert mask_worth.measure(model, x, y, batch=8, batches=3, seed=0) == list(rows.values())


def test_error_mask_worth_refuses_a_run_without_masks(tmp_path):
    recipe = Training(data=Data(size=16, train_pictures=24, test_pictures=12), encoder=Network(width=4))
    train(replace(recipe, epochs=1, batch_size=6), tmp_path, name="tiny/plain", quiet=True)
    with pytest.raises(SystemExit, match="learns no masks: its mixup is plain"):
        load("mask_worth").main([str(tmp_path)])
