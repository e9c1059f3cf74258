"""samix knn: neighbours of a trained run's encoder, printed and written."""

import json
import shutil

import pytest
import yaml

from samix.commands.knn import run
from samix.data import views
from samix.data.datasets import load_data
from samix.evaluate.features import features_of
from samix.evaluate.knn import knn_accuracy
from samix.runs.weights import load_encoder


@pytest.fixture
def folder(trained, tmp_path):
    """A copy of a finished run to write in."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def knn(capsys, monkeypatch):
    """Runs the command and returns what it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def knn(*words):
        run([str(word) for word in words])
        return capsys.readouterr().out

    return knn


def test_value_of_the_online_encoder(knn, folder):
    encoder, *_, data = load_encoder(folder)
    split = load_data(data)
    train, test = (
        features_of(encoder, part, views.test_view(data), split.stats) for part in (split.train, split.test)
    )
    expected = knn_accuracy(*train, *test, classes=12, k=5, tau=0.1)
    printed = json.loads(knn(folder, "--k", 5, "--tau", 0.1, "--json"))
    assert printed == expected._asdict() | {"k": 5, "tau": 0.1}


def test_value_file_says_how_it_came_about(knn, folder):
    printed = json.loads(knn(folder, "--json"))
    written = json.loads((folder / "knn.json").read_text())
    assert written == printed | {"command": f"samix knn {folder} --json"}
    assert written["k"] == 24, "capped at the training pictures"
    assert not list(folder.glob("*.tmp"))


def test_value_a_pretraining_is_asked_as_its_own_tests_asked(knn, folder):
    config = yaml.safe_load((folder / "config.yaml").read_text())
    kept = {name: config[name] for name in ("data", "encoder", "machine")}
    settings = kept | {"method": {"name": "moco-v2"}, "mixup": {"name": "plain"}, "knn": 3}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    assert json.loads(knn(folder, "--json"))["k"] == 3
    assert json.loads(knn(folder, "--json", "--k", 5))["k"] == 5


def test_value_table(knn, folder):
    out = knn(folder)
    written = json.loads((folder / "knn.json").read_text())
    assert "top-1 %" in out and f"{written['top1']:.2f}" in out and "0.07" in out


def test_value_data_may_be_overridden(knn, folder):
    knn(folder, "--data.train_pictures", 7, "--machine.threads=1", "--machine.devices", 3)
    assert json.loads((folder / "knn.json").read_text())["k"] == 7


def test_value_help(capsys):
    with pytest.raises(SystemExit) as leaving:
        run(["--help"])
    assert leaving.value.code == 0 and "samix knn RUN" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", "3"], "unknown option --epochs: only --data.* and --machine.* are fields here"),
        (["--optimizer.lr=1"], "unknown option --optimizer.lr: only"),
        (["--data.rot", "x"], "unknown field 'data.rot'. Did you mean 'data.root'?"),
        (["--k", "0"], "k must be positive, got 0"),
        (["--tau", "-1"], "tau must be positive, got -1.0"),
    ],
)
def test_error_words(words, said, folder):
    with pytest.raises(ValueError) as refused:
        run([str(folder), *words])
    assert said in str(refused.value)
    assert not (folder / "knn.json").exists()


def test_error_no_run():
    with pytest.raises(ValueError, match="name a run folder first: samix knn RUN"):
        run([])


def test_error_an_unfinished_run(folder):
    (folder / "encoder.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no encoder.safetensors"):
        run([str(folder)])


def test_error_not_a_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="config.yaml does not exist"):
        run([str(tmp_path)])
