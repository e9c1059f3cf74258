"""samix eval: every head of a trained run, and the numbers that training found."""

import csv
import json

import pytest

from samix.commands.eval import legend


def test_value_scores_of_the_last_epoch(call, trained):
    scores = json.loads(call("eval", trained, "--json"))
    assert list(scores) == ["mix_q", "one_q", "mix_k", "one_k"]
    with (trained / "metrics.csv").open() as handle:
        last = list(csv.DictReader(handle))[-1]
    for name in ("top1", "top5", "ece"):
        assert scores["mix_q"][name] == pytest.approx(float(last[name]), abs=1e-3)
    assert scores["one_k"]["top1"] == pytest.approx(float(last["top1_one_k"]), abs=1e-3)


def test_value_table(call, trained):
    out = call("eval", trained)
    assert "step 6" in out and "top-1 %" in out and "ECE %" in out
    assert all(head in out for head in ("mix_q", "one_q", "mix_k", "one_k"))
    assert "one: the clean branch's own classifier" in out and "k: of its momentum copy" in out
    assert legend(["mix_q"]).endswith("the one to report; q: of the trained network")


def test_value_fields_may_be_overridden(call, trained):
    more = json.loads(call("eval", trained, "--json", "--data.test_pictures", 120))
    few = json.loads(call("eval", trained, "--json"))
    assert more["mix_q"] != few["mix_q"]


def test_error_a_run_without_a_checkpoint(fail, trained, tmp_path):
    (tmp_path / "config.yaml").write_text((trained / "config.yaml").read_text())
    assert "has no checkpoint yet. Train it first" in fail("eval", tmp_path)


def test_error_unknown_field(fail, trained):
    assert "unknown field 'data.rot'. Did you mean 'data.root'?" in fail("eval", trained, "--data.rot", "x")


def test_error_another_network(fail, trained):
    said = fail("eval", trained, "--encoder.width", 8)
    assert "is of another network or other classes than asked for now" in said


def test_error_other_classes(fail, trained):
    assert "knows the classes ['" in fail("eval", trained, "--data.name", "digits")
