"""samix linear: a probe of a trained run's encoder, by protocol or exactly, printed and written."""

import json
import shutil
from pathlib import Path

import pytest

from samix.commands.linear import protocol_for, run
from samix.commands.probing import open_run
from samix.data.datasets import Data
from samix.evaluate.linear import LinearProbe, linear_probe
from samix.evaluate.logistic import logistic_probe
from samix.nn.zoo import Network

SHORT = ["--epochs", "4", "--batch_size", "8"]


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of a finished run to write in."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def linear(capsys, monkeypatch):
    """Runs the command and returns what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def linear(*words):
        run([str(word) for word in words])
        return capsys.readouterr().out

    return linear


@pytest.mark.parametrize("protocol", ["small", "stl10"])
def test_value_a_protocol(linear, folder, protocol):
    printed = json.loads(linear(folder, "--protocol", protocol, *SHORT, "--json"))
    settings = {name: printed[name] for name in LinearProbe.__dataclass_fields__}
    probe = LinearProbe(**settings | {"milestones": tuple(settings["milestones"])})
    opened = open_run(folder, [])
    expected = linear_probe(opened.encoder, opened.split, opened.data, probe)
    assert printed["protocol"] == protocol and probe.epochs == 4 and probe.batch_size == 8
    assert {name: printed[name] for name in ("top1", "top5", "ece", "cross_entropy")} == pytest.approx(
        expected._asdict()
    )


def test_value_milestones(linear, folder):
    moved = json.loads(linear(folder, "--protocol", "stl10", "--view", "none", *SHORT, "--json"))
    assert moved["milestones"] == [2, 3] and moved["view"] == "none"
    named = [folder, "--protocol", "stl10", "--view", "none", *SHORT, "--milestones", 1, 2, "--json"]
    assert json.loads(linear(*named))["milestones"] == [1, 2]


def test_value_exact(linear, folder):
    printed = json.loads(linear(folder, "--exact", "--penalty", 0.1, "--json"))
    opened = open_run(folder, [])
    parts = opened.features(opened.split.train), opened.features(opened.split.test)
    expected = logistic_probe(*parts[0], *parts[1], classes=12, penalty=0.1)
    assert printed == pytest.approx(expected._asdict() | {"protocol": "exact", "penalty": 0.1})


def test_value_file_says_how_it_came_about(linear, folder):
    printed = json.loads(linear(folder, *SHORT, "--json"))
    written = json.loads((folder / "linear.json").read_text())
    assert written == printed | {"command": f"samix linear {folder} --epochs 4 --batch_size 8 --json"}
    assert written["protocol"] == "small"
    assert not list(folder.glob("*.tmp"))


def test_value_table(linear, folder):
    out = linear(folder, "--exact", "--data.train_pictures", 20)
    written = json.loads((folder / "linear.json").read_text())
    assert f"{written['top1']:.2f}" in out and "exact" in out


@pytest.mark.parametrize(
    ("data", "network", "method", "protocol"),
    [
        ("folder", "resnet50", None, "imagenet"),
        ("folder", "resnet50", "moco-v1", "imagenet"),
        ("folder", "resnet18", "moco-v2", "imagenet"),
        ("folder", "resnet50", "moco-v3", "imagenet"),
        ("folder", "resnet50", "simclr", "simsiam"),
        ("folder", "resnet50", "byol", "simsiam"),
        ("folder", "resnet50", "swav", "simsiam"),
        ("folder", "resnet50", "simsiam", "simsiam"),
        ("folder", "vit-s", None, "vit"),
        ("folder", "vit-s-moco", "byol", "vit"),
        ("tiny-imagenet", "resnet18-cifar", None, "tiny"),
        ("tiny-imagenet", "resnet18", "swav", "tiny"),
        ("cifar10", "small-resnet", "swav", "small"),
    ],
)
def test_value_default_protocol(data, network, method, protocol, folder):
    opened = open_run(folder, [])._replace(data=Data(name=data), network=Network(name=network), method=method)
    assert protocol_for(opened) == protocol


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--protocol", "imagnet"], "unknown protocol 'imagnet'. Did you mean 'imagenet'?"),
        (["--exact", "--epochs", "3"], "--exact has no --epochs: it solves for the optimum"),
        (["--penalty", "1"], "--penalty goes with --exact"),
        (["--exact", "--penalty", "0"], "penalty must be positive"),
        (["--epochs", "0"], "epochs must be at least 1, got 0"),
        (["--lr", "-1"], "lr must be positive, got -1.0"),
        (
            ["--schedule", "cosin"],
            "unknown schedule 'cosin'. Did you mean 'cosine'? Available: step, cosine.",
        ),
        (["--view", "crop"], "unknown view 'crop'. Did you mean 'crop-flip'?"),
        (["--batch_size", "25"], "batch_size 25 is larger than the 24 training pictures"),
        (["--optimizer.lr", "1"], "unknown option --optimizer.lr: only --data.* and --machine.* are fields"),
    ],
)
def test_error_words(words, said, folder, unchecked_shapes):
    with pytest.raises(ValueError) as refused:
        run([str(folder), *words])
    assert said in str(refused.value)
    assert not (folder / "linear.json").exists()


def test_error_a_protocol_or_exact(folder, capsys):
    with pytest.raises(SystemExit):
        run([str(folder), "--exact", "--protocol", "small"])
    assert "not allowed with" in capsys.readouterr().err


def test_error_no_run():
    with pytest.raises(ValueError, match="name a run folder first: samix linear RUN"):
        run(["--exact"])


def test_value_the_method_of_a_pretraining_is_known(call, small, folder):
    call("pretrain", "ssl-demo/byol", "--out", "pre", *small, "--data.name", "synthetic", "--quiet")
    opened = open_run(Path("pre"), [])
    assert (opened.method, opened.knn) == ("byol", 20)
    assert (
        protocol_for(opened._replace(data=Data(name="folder"), network=Network(name="resnet50"))) == "simsiam"
    )
    assert open_run(folder, []).method is None
