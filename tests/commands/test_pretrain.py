"""samix pretrain, and what to do with the encoder afterwards."""

import json

import pytest

from samix.commands.eval import run as evaluate

WORDS = "--epochs 1 --batch_size 8 --data.size 16 --data.train_pictures 24 --data.test_pictures 12"
WORDS += " --encoder.width 4 --machine.accelerator cpu --quiet"


@pytest.mark.slow
def test_value_pretrain_then_neighbours_then_probe(call, tmp_path):
    words = [*WORDS.split(), "--mixup.clusters.count", "3", "--mixup.clusters.min_size", "2"]
    out = call("pretrain", "ssl-demo", "--mixup", "samix-c", *words)
    run = tmp_path / "runs" / "ssl-demo" / "moco-v2+samix-c" / "0"
    assert "ssl-demo/moco-v2+samix-c seed 0: k-NN" in out and "NMI of the clusters" in out
    assert json.loads((run / "summary.json").read_text())["mixup"] == "samix-c"
    assert (run / "samples").is_dir() or list(run.glob("*.png"))
    call("knn", run, "--k", 5)
    call("linear", run, "--exact")
    assert (run / "knn.json").exists() and (run / "linear.json").exists()


def test_value_seeds_and_methods(call, tmp_path):
    call("pretrain", "ssl-demo", "--method", "byol", "--seeds", 0, 1, *WORDS.split())
    assert {p.name for p in (tmp_path / "runs" / "ssl-demo" / "byol").iterdir()} == {"0", "1"}


def test_error_eval_of_a_pretraining_names_the_right_commands(call, tmp_path):
    call("pretrain", "ssl-demo", "--out", "run", *WORDS.split())
    with pytest.raises(ValueError, match="samix linear"):
        evaluate([str(tmp_path / "run")])
