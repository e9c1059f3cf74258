"""What `samix knn` and `samix linear` share: a run's encoder, pictures to judge it by, a published result."""

import argparse
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from lightning_fabric import Fabric
from rich.console import Console
from rich.table import Table
from torch import Tensor

from samix.commands.fields import from_yaml, override
from samix.data import Data, ImageSet, Split, load_data, test_view
from samix.engine.machine import Machine, check_present
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import choice_name
from samix.evaluate import features_of
from samix.nn.encoder import Encoder
from samix.nn.zoo import Network
from samix.runs.files import write_text
from samix.runs.weights import load_encoder

PERCENT = {"top1": "top-1 %", "top5": "top-5 %", "ece": "ECE %"}


class Opened(NamedTuple):
    """A run's online encoder on its device, and the pictures to judge it by."""

    folder: Path
    encoder: Encoder
    network: Network
    data: Data
    split: Split
    device: torch.device
    knn: int
    """Neighbours that voted in the tests during training; 0 where there were none."""
    method: str | None = None
    """What a pre-training learned, by the name of METHODS; None where labels were learned."""

    def features(self, images: ImageSet) -> tuple[Tensor, Tensor]:
        """Features and labels of pictures, seen as in testing."""
        view, stats = test_view(self.data), self.split.stats
        return features_of(self.encoder, images, view, stats, device=self.device, workers=self.data.workers)


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
    saved, split = load_encoder(folder), load_data(recipe.data).labelled
    if saved.network.weights is not None:
        split = split.normalised_by(saved.stats)
    if len(split.train.classes) < 2:
        raise ValueError(
            f"the pictures of {folder} have no labels to test by. Name a labelled set, for example "
            "--data.name folder --data.root FOLDER with train/<class>/ and val/<class>/ inside."
        )
    device = device_of(recipe.machine)
    encoder = saved.encoder.to(device).to(memory_format=recipe.machine.layout)  # type: ignore[call-overload]
    opened = Opened(folder, encoder, saved.network, recipe.data, split, device, knn=0)
    if not isinstance(recipe, Pretraining):
        return opened
    return opened._replace(knn=recipe.knn, method=choice_name(recipe, "method"))


def device_of(machine: Machine) -> torch.device:
    """One device, however many the run was trained on."""
    check_present(replace(machine, devices=1))
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
        if measure in PERCENT:
            table.add_row(PERCENT[measure], f"{value:.2f}")
        else:
            table.add_row(measure, str(value))
    Console().print(table)
