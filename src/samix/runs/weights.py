"""Weights to use elsewhere: encoder.safetensors and mixer.safetensors, described in their headers."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from samix.core.shapes import Stats
from samix.data.datasets import Data
from samix.nn.encoder import Encoder
from samix.nn.zoo import Network
from samix.runs import schema
from samix.runs.files import CONFIG, ENCODER, write_bytes
from samix.runs.records import read_config

SLACK = 10_000_000
"""Weights that an encoder may have whatever its file holds: to say what does not fit, it must be built."""


class SavedEncoder(NamedTuple):
    """The online encoder of a finished run, in training mode as freshly built, and what it was trained on."""

    encoder: Encoder
    network: Network
    """How the encoder was built."""
    size: int
    """Side of the pictures it was trained on."""
    classes: tuple[str, ...]
    """Names of the classes of its dataset."""
    stats: Stats | None
    """How its pictures were normalised; None where a run of before 0.2 does not tell."""
    data: Data | None
    """The data of the run's config.yaml; None where there is no such file."""


def save_weights(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    """Weights as safetensors, with a JSON description in the header."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(plain, metadata={"samix": json.dumps(metadata)}))


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and the description that samix wrote into the header."""
    try:
        with safe_open(path, "pt") as file:
            about = (file.metadata() or {}).get("samix")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}.") from error
    if about is None:
        raise ValueError(f"{path} was not written by samix: its header does not describe the encoder.")
    try:
        described = json.loads(about)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the description in the header of {path} is not readable JSON: {error}.") from error
    if not isinstance(described, dict):
        raise ValueError(
            f"the description in the header of {path} must be one JSON object, got {about[:40]!r}."
        )
    return tensors, described


def load_encoder(run: Path) -> SavedEncoder:
    """The encoder of a run folder, on the CPU."""
    path = run / ENCODER
    if not path.is_file():
        raise FileNotFoundError(
            f"{run} has no {ENCODER}, which a run writes when it ends. Finish it with `samix train`, "
            "or check the folder's name."
        )
    tensors, about = read_weights(path)
    schema.check(path, about, schema.DESCRIPTION, needed=("encoder", "size", "classes"))
    size, classes = about["size"], tuple(about["classes"])
    network, encoder = build_described(path, about, tensors)
    try:
        encoder.network.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} do not fit {network}: {error}") from error
    stats = (
        Stats(tuple(about["mean"]), tuple(about["std"])) if about.get("mean") and about.get("std") else None
    )
    return SavedEncoder(encoder, network, size, classes, stats, read_data(run / CONFIG))


def build_described(path: Path, about: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[Network, Encoder]:
    """The settings and the fresh encoder that a file of weights describes.

    One that is larger than the file's weights is refused before it takes memory.
    """
    try:
        network = Network(**about["encoder"])
        held = sum(map(Tensor.numel, tensors.values()))
        return network, build_encoder(network, about["size"], 10 * held + SLACK)
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise ValueError(f"{path} describes an encoder that cannot be built: {error}") from error


def build_encoder(network: Network, size: int, most: int) -> Encoder:
    """A fresh encoder of at most so many weights, counted before any memory is taken."""
    numbers = 0
    with torch.device("meta"), suppress(RuntimeError):  # some networks compute while they are built
        numbers = sum(weight.numel() for weight in network.build(size).parameters())
    if numbers > most:
        raise ValueError(f"its encoder has {numbers} weights, and at most {most} are allowed.")
    return network.build(size)


def read_data(path: Path) -> Data | None:
    """The `data` fields of a run's config.yaml."""
    if not path.is_file():
        return None
    try:
        return Data(**read_config(path)["data"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not hold the data of a run: {error}") from error
