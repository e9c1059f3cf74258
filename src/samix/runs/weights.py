"""Weights to use elsewhere: encoder.safetensors and mixer.safetensors, described in their headers."""

import json
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from samix.core.shapes import Stats
from samix.data.datasets import Data
from samix.learned.frozen import FrozenMixer, Painter
from samix.learned.mixer import MixerConfig
from samix.nn.encoder import Encoder
from samix.nn.zoo import Network
from samix.runs.files import CONFIG, ENCODER, MIXER, write_bytes
from samix.runs.records import read_config


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
    return tensors, json.loads(about)


def load_encoder(run: Path) -> SavedEncoder:
    """The encoder of a run folder, on the CPU."""
    path = run / ENCODER
    if not path.is_file():
        raise FileNotFoundError(
            f"{run} has no {ENCODER}, which a run writes when it ends. Finish it with `samix train`, "
            "or check the folder's name."
        )
    tensors, about = read_weights(path)
    try:
        network, size, classes = Network(**about["encoder"]), int(about["size"]), tuple(about["classes"])
        encoder = network.build(size)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} describes an encoder that cannot be built: {error}") from error
    try:
        encoder.network.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} do not fit {network}: {error}") from error
    stats = Stats(tuple(about["mean"]), tuple(about["std"])) if "mean" in about and "std" in about else None
    return SavedEncoder(encoder, network, size, classes, stats, read_data(run / CONFIG))


def load_mixer(source: str | PathLike[str]) -> FrozenMixer:
    """The Mixer of a finished run, or of such a run's mixer.safetensors, frozen, as a policy (SAMix-P).

    Files are data: nothing in them is executed, and what does not fit is refused.
    """
    path = Path(source) / MIXER if Path(source).is_dir() else Path(source)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no Mixer at {source}: expected a run folder with {MIXER}, which a run with a learned "
            "mixup writes when it ends, or such a file."
        )
    tensors, about = read_weights(path)
    try:
        network, size = Network(**about["encoder"]), int(about["size"])
        stats = Stats(tuple(about["mean"]), tuple(about["std"]))
        encoder = network.build(size)
        mixer = MixerConfig(**about["mixer"]).build(encoder.probe(size)[0])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} does not describe a Mixer that can be built: {error!r}. Mixers of before 0.2 do not say "
            "how their pictures were normalised (mean, std)."
        ) from error
    for part, module in (("encoder", encoder.network), ("mixer", mixer)):
        weights = {name.partition(".")[2]: w for name, w in tensors.items() if name.partition(".")[0] == part}
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"the weights in {path} do not fit its {part}: {error}") from error
    return FrozenMixer(painter=Painter(encoder, mixer, stats, size))


def read_data(path: Path) -> Data | None:
    """The `data` fields of a run's config.yaml."""
    if not path.is_file():
        return None
    try:
        return Data(**read_config(path)["data"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} does not hold the data of a run: {error}") from error
