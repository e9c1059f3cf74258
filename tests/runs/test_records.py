"""Means of an epoch, metrics.csv and summary.json."""

import subprocess
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.contract import Losses, MixerLog
from samix.data.datasets import load_data
from samix.engine import summary as summaries
from samix.engine.step import Meter
from samix.engine.summary import describe_start, summarize
from samix.engine.tasks import accuracies
from samix.engine.training import to_dict
from samix.runs import provenance
from samix.runs.provenance import commit, git
from samix.runs.records import COLUMNS, Start, begin_run, read_metrics, write_metrics


def losses(value: float, gamma: float | None = 0.5) -> Losses:
    log = MixerLog(*torch.tensor([value, 2 * value, 3.0, float("nan") if gamma is None else gamma, 0.1, 0.2]))
    return Losses(torch.tensor(value), torch.tensor(10 * value), log=log)


def test_value_meter_averages_each_value_over_the_steps_that_have_it():
    meter = Meter()
    meter.add(losses(1.0))
    meter.add(losses(3.0))
    meter.add(Losses(torch.tensor(8.0)))  # a step that did not train the Mixer
    row = meter.row(4, 300, time.monotonic() - 2)
    assert row["epoch"] == 4
    assert row["loss"] == 4.0 and row["mixer"] == 20.0
    assert row["local"] == 2.0 and row["globally"] == 4.0 and row["gamma"] == 0.5
    assert row["images_per_s"] == pytest.approx(150, rel=0.05)


def test_value_meter_leaves_out_what_the_mixer_lacks():
    meter = Meter()
    meter.add(losses(1.0, gamma=None))
    row = meter.row(1, 10, 0.0)
    assert "gamma" not in row and "gap" in row


def test_value_meter_keeps_no_graph():
    meter = Meter()
    meter.add(Losses(torch.tensor(1.0, requires_grad=True) * 2))
    assert not meter.sums["loss"].requires_grad


@given(st.lists(st.floats(0, 1e4, width=32), min_size=1, max_size=6), st.integers(1, 6))
def test_invariant_metrics_come_back(tmp_path_factory, values, last):
    folder = tmp_path_factory.mktemp("metrics")
    rows = [{"epoch": float(n), "loss": v, "top1_one_q": v / 2} for n, v in enumerate(values, start=1)]
    write_metrics(folder, rows)
    found = read_metrics(folder, last)
    assert [row["epoch"] for row in found] == [n for n in range(1, len(values) + 1) if n <= last]
    for row, expected in zip(found, rows, strict=False):
        assert row == pytest.approx(expected, rel=1e-5)


def test_value_metrics_columns(tmp_path):
    write_metrics(
        tmp_path, [{"epoch": 1.0, "loss": 2.0}, {"epoch": 2.0, "loss": 1.0, "top1": 50.0, "top1_mix_k": 40.0}]
    )
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    assert lines[0].split(",") == [*COLUMNS, "top1_mix_k"]
    assert len(lines) == 3
    assert "top1" not in read_metrics(tmp_path, 1)[0]


def test_value_no_metrics_yet(tmp_path):
    assert read_metrics(tmp_path, 5) == []


def row(epoch: int, top1: float | None = None) -> dict[str, float]:
    known = {"epoch": float(epoch), "seconds": 10.0 * epoch, "images_per_s": 100.0 + epoch, "loss": 1.0}
    if top1 is None:
        return known
    return known | {"top1": top1, "top5": top1 + 5, "ece": 100 - top1, "top1_one_q": top1 - 1}


def test_value_top1_is_the_median_of_the_last_ten_tested_epochs(tiny):
    tested = [99.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 30.0, 20.0, 8.0]
    rows = [row(n, value) for n, value in enumerate(tested, start=1)]
    rows.insert(5, row(5))  # an epoch without a test
    start = Start("tiny/samix", "samix train tiny", "abc", 24, 12)
    summary = summarize(start, tiny(seed=3), rows, accuracies(rows))
    assert summary["top1"] == 5.5
    assert summary["best"] == 99.0 and summary["last"] == 8.0
    assert summary["top5"] == 13.0 and summary["ece"] == 92.0
    assert summary["heads"] == {"mix_q": 5.5, "one_q": 4.5}
    assert summary["seconds"] == 110.0 and summary["images_per_s"] == 105.5
    assert summary["seed"] == 3 and summary["command"] == "samix train tiny"
    assert summary["recipe"] == "tiny/samix" and summary["commit"] == "abc"
    assert summary["train_pictures"] == 24 and summary["test_pictures"] == 12


def test_value_few_epochs():
    assert accuracies([row(1, 10.0), row(2, 20.0)])["top1"] == 15.0


def test_value_best_is_the_best_of_the_tested_epochs():
    assert accuracies([row(1), row(2, 20.0), row(3), row(4, 10.0)])["best"] == 20.0


def test_value_commits_of_a_start(tiny, tmp_path, monkeypatch):
    """One of a fresh run; each of them once of a run that went on at others."""
    split = load_data(tiny().data)
    begun = []
    for now, resumed in (("a", False), ("b", True), ("a", True), ("", True), ("c", False)):
        monkeypatch.setattr(summaries, "commit", lambda now=now: now)
        begun.append(describe_start(tmp_path, "tiny/samix", "samix train tiny", split, resumed=resumed))
        begin_run(tmp_path, to_dict(tiny()), begun[-1])
    assert [start.commit for start in begun] == ["a", "a+b", "a+b", "a+b", "c"]
    assert begun[0][:2] == ("tiny/samix", "samix train tiny") and begun[0][3:] == (24, 12)


def in_git(folder: Path, *words: str) -> None:
    user = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *user, *words], cwd=folder, check=True)


def test_value_commit_is_that_of_our_own_checkout(tmp_path, monkeypatch):
    file = tmp_path / "log.py"
    file.write_text("1")
    for words in (["init", "-q"], ["add", "log.py"], ["commit", "-q", "-m", "ours"]):
        in_git(tmp_path, *words)
    monkeypatch.setattr(provenance, "__file__", str(file))
    full = git("rev-parse", "HEAD", folder=tmp_path)
    assert len(full) == 40 and commit() == full[:10]
    file.write_text("2")
    assert commit() == f"{full[:10]}-dirty"


def test_value_somebody_elses_commit_is_not_ours(tmp_path, monkeypatch):
    """An environment inside another repository."""
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        in_git(tmp_path, *words)
    assert git("log", "--format=%s", folder=tmp_path) == "theirs"
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "log.py"))
    assert commit() == ""
