"""The command line as a person meets it: help, versions, and mistakes in one sentence."""

import subprocess
import sys

import pytest
import torch

import samix
from samix import __version__
from samix.cli import COMMANDS, format_warning, message, run


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Runs a command line in an empty folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("SAMIX_DATA", "SAMIX_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        try:
            code = run(list(words))
        except SystemExit as stop:  # argparse's own way out
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return call


def test_value_version(call):
    assert call("--version") == (0, f"samix {__version__}\n", "")


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_value_help_lists_every_command_and_first_steps(call, words):
    code, out, err = call(*words)
    assert code == 0 and err == ""
    for name, about in COMMANDS.items():
        assert f"  {name} " in out and about in out
    assert "samix demo" in out and "samix COMMAND --help" in out


HELPS = {
    "bench": ("--seeds", "--jobs", "--baseline", "--print", "samix bench demo"),
    "demo": ("--epochs", "--out", "--seed", "No data needed"),
    "train": ("--config", "--mixup", "--seeds", "--optimizer.lr", "--mixup.eta", "examples:", "default: 0.1"),
    "eval": ("--json", "run folder"),
    "predict": ("--top", "--out", "--batch", "run folder", "CSV"),
    "pretrain": ("--config", "--method", "--mixup", "--seeds", "--method.tau", "--terms.base", "examples:"),
    "knn": ("--k", "--tau", "--json"),
    "linear": ("--protocol", "--exact", "--json"),
    "mixer": ("--data.root PICTURES", "--mixup NAME", "--encoder.weights", "--out", "examples:"),
    "show": ("--images A B", "--size", "run folder"),
    "export": ("--out", "--half", "--license", "run folder"),
    "push": ("--private", "owner/name", "hf auth login"),
    "data": ("--quick", "--as SET", "--json", "Exit code 1", "cub200"),
    "recipes": ("samix train FAMILY/ROW",),
    "report": ("--out", "run folders"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_value_help_of_every_command(call, command):
    code, out, err = call(command, "--help")
    assert code == 0 and err == ""
    for words in HELPS[command]:
        assert words in out, words


def test_value_help_of_a_recipe_shows_its_own_values_and_explains_every_field(call):
    code, out, _ = call("train", "cifar100-r18/cutmix", "--help")
    assert code == 0
    assert "fields of cifar100-r18/cutmix" in out
    assert "lam ~ Beta(alpha, alpha). (type: float, default: 0.2)" in out
    assert "Passes over the training pictures. (type: int, default: 800)" in out
    assert "--mixup.alpha" in out and "--mixup.eta" not in out.partition("fields of")[2]


MISTAKES = {
    "tran": r"unknown command 'tran'. Did you mean 'train'?",
    "train ssl-demo": "'ssl-demo' learns without labels: `samix pretrain ssl-demo`.",
    "pretrain demo/samix": "'demo/samix' learns from labels: `samix train demo/samix`.",
    "train --epochs 1 demo/samix": "name a recipe, right behind `samix train`",
    "train demo --data.root mine": "'synthetic' reads no files. Your own pictures: --data.name folder.",
    "train demo --machine.strategy fsdp": "unknown machine.strategy 'fsdp'",
    "show runs/x --out y.png": "--out goes with --images",
    "train": "or a --config file, one of them",
    "train demo --config x.yaml": "or a --config file, one of them",
    "train --config x.yaml": "x.yaml does not exist",
    "train --config x.yaml --mixup cutmix": "--mixup goes with a recipe's name",
    "pretrain": "or a --config file, one of them",
    "pretrain ssl-dmo": "unknown recipe 'ssl-dmo'. Did you mean 'ssl-demo'?",
    "pretrain ssl-demo/moco-v22": "unknown method 'moco-v22'. Did you mean 'moco-v2'?",
    "pretrain ssl-demo --method bol": "unknown method 'bol'. Did you mean 'byol'?",
    "pretrain ssl-demo --mixup samixi": "unknown mixup 'samixi'. Did you mean 'samix-i'?",
    "pretrain ssl-demo --method.tau 0": "method.tau must be positive, got 0.0",
    "pretrain ssl-demo --method.quue 5": "unknown field 'method.quue'. Did you mean 'method.queue'?",
    "pretrain ssl-demo --machine.accumulate 2": "parts of a batch do not see each other as negatives",
    "pretrain ssl-demo --augment smal": "unknown augment 'smal'. Did you mean 'small'?",
    "pretrain ssl-demo --mixup samix-c --mixup.clusters.count 5000": "only 1347 training pictures",
    "pretrain ssl-folder": "needs --data.root",
    "knn": "name a run folder",
    "linear": "name a run folder",
    "train dmo": "unknown recipe 'dmo'. Did you mean 'demo'?",
    "train demo/samx": "unknown row of demo 'samx'. Did you mean 'samix'?",
    "train demo --mixup cutmx": "unknown mixup 'cutmx'. Did you mean 'cutmix'?",
    "train demo --encoder.name resnet-18": "unknown encoder 'resnet-18'. Did you mean 'resnet18'?",
    "train demo --optimizer.name adamv": "unknown optimizer.name 'adamv'. Did you mean 'adamw'?",
    "train demo --optimzer.lr 1": "unknown field 'optimzer.lr'. Did you mean 'optimizer.lr'?",
    "train demo --lr 0.1": "unknown field 'lr'. Did you mean 'optimizer.lr'?",
    "train demo --mixup.name cutmix": "--mixup.name cannot be set on its own; choose it with --mixup NAME",
    "train demo --seeds 1 --seed 2": "--seed and --seeds were both given",
    "train --config .": ". is not a file. Expected a YAML file",
    "train demo --optimizer.l=1": "unknown field 'optimizer.l'. Did you mean 'optimizer.lr'?",
    "train demo --mixup cutmix --mixup.eta 1": "unknown field 'mixup.eta'. Did you mean",
    "train demo --optimizer.lr fast": "--optimizer.lr must be a finite number, got fast.",
    "train demo --optimizer.lr nan": "--optimizer.lr must be a finite number, got nan.",
    "train demo --epochs 1.5": "--epochs must be a whole number, got 1.5.",
    "train demo --data.train_pictures few": "--data.train_pictures must be a whole number or null, got few.",
    "train demo cutmix": "'cutmix' stands alone: settings are written --field value, a mixup --mixup NAME",
    "train demo/samix --mixup cutmix": "demo/samix names its row already; for another write demo --mixup",
    "train demo --machine.accelerator foo": "unknown machine.accelerator 'foo'",
    "eval nowhere": "nowhere is not a run folder",
    "train demo --machine.compile maybe": "machine.compile",
    "train demo --epochs": "--epochs: expected one argument",
    "train demo --seeds x": "--seeds: invalid int value: 'x'",
    "train demo extra": "extra",
    "train demo --optimizer.lr -1": "optimizer.lr must be positive, got -1.0",
    "train demo --epochs 0": "epochs must be at least 1, got 0",
    "train demo --batch_size 1": "batch_size must be at least 2",
    "train dmeo/samix": "unknown recipe 'dmeo/samix'. Did you mean 'demo/samix'?",
    "pretrain ssl-dmo/byol": "unknown recipe 'ssl-dmo/byol'. Did you mean 'ssl-demo/byol'?",
    "train demo --batch_size=": "--batch_size must be a whole number, got nothing.",
    "train demo --machine.threads 1000000": "machine.threads must be at most 1024, got 1000000",
    "train demo --devices 1000000 --batch_size 9000000": "machine.devices must be at most 1024",
    "train demo --data.size 2147483648": "data.size must be at most 4096, got 2147483648",
    "train demo --data.workers 100000": "data.workers must be at most 1024",
    "train demo --data.test_pictures 9223372036854775807": "at most 200000 of either, 4 GB together",
    "train demo --data.train_pictures 100000 --data.size 512": "of 512 px are more than the embedded set",
    "pretrain ssl-demo --mixup supermix": "Choose another --mixup: inter-intra and puzzlemix-pl learn pseudo",
    "train demo --mixup.eta 2": "mixup.eta must lie in [0, 1], got 2.0",
    "train demo --mixup.mixer.gamma 2": "mixer.gamma must lie in [0, 1], got 2.0",
    "train demo --machine.precision bf16": "unknown machine.precision 'bf16'.",
    "train demo --machine.tracker tensorbord": "unknown machine.tracker 'tensorbord'. Did you mean",
    "train demo --machine.devices 0": "machine.devices must be at least 1",
    "train demo --data.name cifar": "unknown dataset 'cifar'. Did you mean 'cifar10'?",
    "train demo --data.name folder": "needs --data.root",
    "train demo --data.name folder --data.root nowhere": "nowhere is not a folder",
    "train cifar100-r18": "dataset 'cifar100' not found: looked for cifar100.npz or cifar-100-python in",
    "eval": "name a run folder first",
    "show": "name a run folder or --images A B",
    "show nowhere": "nowhere is not a run folder",
    "show --images a.png b.png": "a.png is not a file. Expected a picture",
    "show --images a.png b.png --size 0": "--size must be at least 1, got 0",
    "show --images a.png b.png --out c.jpg": "--out must end in .png, got c.jpg",
    "report nowhere": "nowhere does not exist",
    "report nowhere --out page.png": "--out must end in .html, got page.png",
    "report": "required: runs",
    "export nowhere": "nowhere is not a run folder",
    "push nowhere me/mixer": "there is no nowhere: `samix export RUN` writes a Mixer and its card",
    "recipes all": "unknown recipe 'all'. Available: demo, digits",
    "demo --epochs many": "--epochs: invalid int value: 'many'",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_error_mistakes_are_one_sentence(call, line, tmp_path):
    code, _, err = call(*line.split())
    assert code == 2
    assert MISTAKES[line] in err
    assert "Traceback" not in err and "SAMIX_DEBUG" not in err
    assert not list(tmp_path.iterdir()), "a refused command leaves nothing behind"


def raise_in(monkeypatch, error: Exception) -> None:
    """Has `samix recipes` end in the error."""
    from samix.commands import recipes

    def fail(words: list[str]) -> None:
        raise error

    monkeypatch.setattr(recipes, "run", fail)


def test_error_of_others_says_how_to_see_where(call, monkeypatch):
    raise_in(monkeypatch, RuntimeError("mat1 and mat2 do not fit"))
    code, _, err = call("recipes")
    assert (code, err) == (2, "samix: mat1 and mat2 do not fit\n(SAMIX_DEBUG=1 shows where.)\n")


def test_error_shows_escape_sequences_as_text(call, monkeypatch):
    raise_in(monkeypatch, ValueError("run \x1b[2J\x07 of\nyours"))
    assert call("recipes")[2].startswith("samix: run \\x1b[2J\\x07 of\nyours\n")


def test_error_a_lost_process_is_one_sentence(call, monkeypatch):
    raise_in(monkeypatch, RuntimeError("[/x/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error"))
    _, _, err = call("recipes")
    said = "another process of this training has ended. The same command goes on from the last checkpoint."
    assert err == f"samix: {said}\n"


def test_value_an_error_of_a_loading_worker_is_its_sentence():
    passed_on = (
        "Caught ValueError in DataLoader worker process 0.\nOriginal Traceback:\n  File x\nValueError: a: b."
    )
    assert message(ValueError(passed_on)) == "a: b."
    assert message(ValueError("a: b.\nc.")) == "a: b.\nc."


def test_error_debugging_shows_where(call, monkeypatch):
    monkeypatch.setenv("SAMIX_DEBUG", "1")
    with pytest.raises(ValueError, match="unknown recipe"):
        call("train", "dmo")


def test_value_interrupting_is_not_an_error_of_the_program(call, monkeypatch):
    from samix.commands import recipes

    def interrupt(words: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "run", interrupt)
    code, _, err = call("recipes")
    assert code == 130 and "goes on from the last checkpoint" in err


@pytest.mark.parametrize("line", ["--help", pytest.param("train --help", marks=pytest.mark.slow)])
def test_value_a_reader_that_leaves_is_no_error(line):
    words = [sys.executable, "-m", "samix", *line.split()]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_invariant_importing_samix_does_not_wait_for_others():
    heavy = {"timm", "torchvision", "lightning_fabric", "sklearn", "matplotlib", "PIL", "samix.data"}
    code = f"import sys, samix; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_value_own_warnings_are_one_sentence():
    own, foreign = samix.cli.__file__, "/elsewhere/torch/nn.py"
    assert (
        format_warning("--a is now called --b.", FutureWarning, own, 3) == "samix: --a is now called --b.\n"
    )
    assert (
        format_warning("slow.", UserWarning, foreign, 7) == "/elsewhere/torch/nn.py:7: UserWarning: slow.\n"
    )


@pytest.mark.skipif(torch.cuda.is_available() or torch.backends.mps.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("kind", ["cuda", "gpu", "mps"])
def test_error_a_gpu_that_is_not_there(call, kind):
    code, _, err = call("train", "demo", "--machine.accelerator", kind)
    assert code == 2
    assert f"machine.accelerator is '{kind}', but torch {torch.__version__} finds no such GPU here" in err
