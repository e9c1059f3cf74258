"""Two processes: replicas stay equal, and plain training equals one process on the same global batch."""

from dataclasses import replace

import pytest
import torch
import yaml

from samix.commands.trained import load_trained
from samix.engine import loop
from samix.engine.loop import train
from samix.engine.optim import Optimizer
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import to_dict
from samix.engine.setup import make_fabric
from samix.engine.testing import evaluate, head_scores
from samix.learned.pseudo import Clusters
from samix.learned.samix import Speed
from samix.learned.samix_c import ClusterMixup
from samix.methods.ssl.moco import MoCoV2
from samix.runs.records import read_metrics

# Each process keeps its losses and, at the end, its weights. A process that is not the first may not write.
SCRIPT = """
import sys
from pathlib import Path

import torch
import samix
from samix.commands.fields import from_yaml
from samix.engine import loop
from samix.engine.training import Training
from samix.engine.pretraining import Pretraining
from samix.runs import checkpoint, files, samples
from samix.nn.zoo import ENCODERS, EncoderSpec

nn = torch.nn
ENCODERS["group-norm"] = EncoderSpec(
    lambda: nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GroupNorm(2, 8), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ),
    layer="2",
)
check_finite = loop.check_finite
kept = {}


def keeping(build):
    def keep(*arguments, **options):
        kept["model"], kept["losses"] = build(*arguments, **options), []
        return kept["model"]
    return keep


def check(losses, step, epoch):
    kept["losses"].append(losses.encoder.item())
    check_finite(losses, step, epoch)


loop.check_finite = check
Training.build, Pretraining.build = keeping(Training.build), keeping(Pretraining.build)
folder = Path(sys.argv[1])
for name in sys.argv[2:]:
    recipe = from_yaml(folder / f"{name}.yaml")
    fabric = loop.make_fabric(recipe)
    fabric.launch()
    if fabric.global_rank > 0:
        def refuse(path, write):
            raise AssertionError(f"process {fabric.global_rank} writes {path}")
        files.write_atomically = checkpoint.write_atomically = samples.write_atomically = refuse
    loop.train(recipe, folder / name, name=f"tiny/{name}", quiet=True)
    record = {"losses": kept["losses"], "model": kept["model"].state_dict()}
    torch.save(record, folder / f"{name}.{fabric.global_rank}.pt")
"""


@pytest.fixture
def recipes(tiny, group_norm):
    """SAMix with a Mixer that some batches leave out, plain training without batch statistics, SAMix-C."""
    two = replace(tiny().machine, devices=2)
    learned = replace(tiny().mixup, speed=Speed(fraction=0.5, prob=0.7))
    plain = tiny("plain", encoder=group_norm, optimizer=Optimizer(lr=0.3), epochs=2)
    return {
        "samix": tiny(mixup=learned, machine=two, epochs=2),
        "plain": replace(plain, machine=two, data=replace(plain.data, view="none")),
        "ssl": Pretraining(
            data=tiny().data,
            encoder=tiny().encoder,
            machine=two,
            epochs=2,
            batch_size=6,
            knn=5,
            method=MoCoV2(queue=20, dim=8, hidden=16, momentum=0.9),
            mixup=ClusterMixup(clusters=Clusters(count=3, min_size=2, refresh_every=2)),
        ),
    }


@pytest.mark.slow
def test_value_two_processes(recipes, tmp_path, start_two, monkeypatch):
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    for name, recipe in recipes.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(to_dict(recipe)))
    done = start_two(script, tmp_path, *recipes)
    assert done.returncode == 0, done.stderr[-3000:]

    for name in recipes:
        first, second = (torch.load(tmp_path / f"{name}.{rank}.pt", weights_only=True) for rank in range(2))
        assert first["losses"] != second["losses"]  # each saw its own half of the batch
        for key, value in first["model"].items():
            assert torch.equal(value, second["model"][key]), f"{name}: {key}"
        saved = torch.load(tmp_path / name / "last.ckpt", weights_only=True)["model"]
        assert all(torch.equal(value, first["model"][key]) for key, value in saved.items())

    # The test that two processes shared is one of the model that was saved.
    single = replace(recipes["samix"], machine=replace(recipes["samix"].machine, devices=1))
    split, model, _ = load_trained(tmp_path / "samix", single)
    again = head_scores(evaluate(make_fabric(single), model, split, single))
    last = read_metrics(tmp_path / "samix", 99)[-1]
    assert {name: last[name] for name in again} == pytest.approx(again, abs=1e-3)

    # One process on the same global batches.
    losses, check_finite = [], loop.check_finite

    def check(found, step, epoch):
        losses.append(found.encoder.item())
        check_finite(found, step, epoch)

    monkeypatch.setattr(loop, "check_finite", check)
    alone = replace(recipes["plain"], machine=replace(recipes["plain"].machine, devices=1))
    train(alone, tmp_path / "alone", name="tiny/plain", quiet=True)
    halves = [torch.load(tmp_path / f"plain.{rank}.pt", weights_only=True)["losses"] for rank in range(2)]
    together = [(a + b) / 2 for a, b in zip(*halves, strict=True)]
    assert together == pytest.approx(losses, rel=1e-5)


@pytest.mark.slow
def test_value_devices_on_the_command_line(tmp_path, start, read_json):
    script = tmp_path / "command.py"
    script.write_text("from samix.cli import main\nmain()\n")
    words = "--epochs 1 --batch_size 8 --data.size 16 --data.train_pictures 24 --data.test_pictures 12"
    words += " --encoder.width 4 --machine.accelerator cpu --machine.devices 2 --quiet"
    done = start(script, "train", "demo/samix", "--out", tmp_path / "run", *words.split())
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("top-1") == 1
    assert read_json(tmp_path / "run" / "summary.json")["epochs"] == 1
    tested = start(script, "eval", tmp_path / "run", "--json")
    assert tested.returncode == 0, tested.stderr[-3000:]
    assert tested.stdout.count('"mix_q"') == 1, "the first process alone prints"
