"""samix knn RUN: k-nearest-neighbour accuracy of a run's encoder, and what it shares with samix linear."""

import argparse
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from rich.console import Console
from rich.table import Table
from torch import Tensor

import samix  # noqa: F401  (prepares torchvision)
from samix.commands.fields import from_yaml, override
from samix.data.datasets import Data, ImageSet, Split, load_data
from samix.data.views import test_view
from samix.engine.checkpoint import write_text
from samix.engine.config import Machine, Network
from samix.engine.saved import load_encoder
from samix.evaluate.features import features_of
from samix.evaluate.knn import knn_accuracy
from samix.nn.encoder import Encoder


class Opened(NamedTuple):
    """A run's online encoder on its device, and the pictures to judge it by."""

    folder: Path
    encoder: Encoder
    network: Network
    data: Data
    split: Split
    device: torch.device

    def features(self, images: ImageSet) -> tuple[Tensor, Tensor]:
        """Features and labels of pictures, seen as in testing."""
        view, stats = test_view(self.data), self.split.stats
        return features_of(self.encoder, images, view, stats, device=self.device, workers=self.data.workers)


def run(words: list[str]) -> None:
    """Prints top-1 and top-5 and writes knn.json."""
    parser = argparse.ArgumentParser(
        prog="samix knn",
        usage="samix knn RUN [--k 200] [--tau 0.07] [--json] [--data.field value ...]",
        description="Weighted k-nearest-neighbour accuracy of a run's encoder: no training. Writes knn.json "
        "in the run folder. Fields of data and machine may be overridden, for example --data.root.",
        allow_abbrev=False,
    )
    parser.add_argument("--k", type=int, default=200, help="neighbours that vote (default: 200)")
    parser.add_argument("--tau", type=float, default=0.07, help="temperature of the votes (default: 0.07)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    folder, options, rest = split_words(parser, words)
    opened = open_run(folder, rest)
    train, test = opened.features(opened.split.train), opened.features(opened.split.test)
    score = knn_accuracy(*train, *test, classes=len(opened.split.train.classes), k=options.k, tau=options.tau)
    result = score._asdict() | {"k": min(options.k, len(train[1])), "tau": options.tau}
    publish(folder, "knn", words, result, as_json=options.json)


def split_words(
    parser: argparse.ArgumentParser, words: list[str]
) -> tuple[Path, argparse.Namespace, list[str]]:
    """The run folder, the command's own options and the words that are left for fields."""
    # Taken off first: argparse would mistake the value of an unknown field for it.
    named = bool(words) and not words[0].startswith("-")
    options, rest = parser.parse_known_args(words[1:] if named else words)
    if not named:
        raise ValueError(f"name a run folder first: {parser.prog} RUN [--field value ...].")
    return Path(words[0]), options, rest


def open_run(folder: Path, words: list[str]) -> Opened:
    """Loads encoder and data; `words` may change fields of data and machine, which alone matter here."""
    for word in words:
        if word.startswith("--") and not word.startswith(("--data.", "--machine.")):
            raise ValueError(
                f"unknown option {word.partition('=')[0]}: only --data.* and --machine.* are fields here."
            )
    recipe = override(from_yaml(folder / "config.yaml"), words)
    saved = load_encoder(folder)
    device = device_of(recipe.machine)
    layout = torch.channels_last if recipe.machine.channels_last else torch.contiguous_format
    encoder = saved.encoder.to(device).to(memory_format=layout)  # type: ignore[call-overload]
    return Opened(folder, encoder, saved.network, recipe.data, load_data(recipe.data), device)


def device_of(machine: Machine) -> torch.device:
    """One device, however many the run was trained on."""
    if machine.threads:
        torch.set_num_threads(machine.threads)
    return Fabric(accelerator=machine.accelerator, devices=1).device


def publish(folder: Path, name: str, words: list[str], result: dict[str, Any], *, as_json: bool) -> None:
    """Writes the result and the command that gave it to <name>.json, and prints it."""
    command = shlex.join(["samix", name, *words])
    write_text(folder / f"{name}.json", json.dumps(result | {"command": command}, indent=2) + "\n")
    if as_json:
        print(json.dumps(result, indent=2))
        return
    table = Table("measure", "value", title=f"{folder}, {name}")
    for measure, value in result.items():
        table.add_row(measure, f"{value:.2f}" if measure in ("top1", "top5", "ece") else str(value))
    Console().print(table)
