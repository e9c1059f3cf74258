"""A trained Mixer as one file: safetensors whose header says, as JSON, how to build what it holds.

    tensors   mixer.*, and encoder.* up to the layer that the Mixer reads (none if `weights` names them)
    header    format 2; encoder, weights, size, mean, std, mixer: what to build;
              use: alpha, per_sample, adjusting; about: where it comes from, and its figures

Files without a format are those that runs write, with the whole encoder. Files are data: nothing in them is
executed, and what does not fit is refused.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from samix.core.pairing import check_alpha
from samix.core.seeds import seeded
from samix.core.shapes import Stats
from samix.core.words import suggest
from samix.learned.frozen import FrozenMixer, Painter
from samix.learned.mixer import Adjusting, MixerConfig
from samix.nn.encoder import Encoder
from samix.nn.pretrained import LITE0, lite0_file, load_lite0, read_torch
from samix.nn.reach import names_in_reach
from samix.nn.zoo import Network, find_spec
from samix.runs.schema import TRIPLE, is_finite
from samix.runs.weights import build_encoder, read_weights, save_weights

FORMAT = 2
"""What this samix writes, and the newest that it reads."""
REFERENCES = ("lite0",)
"""Encoder weights that a file may name instead of holding them."""
BUILT_FROM = ("name", "width", "drop_path", "layer")
"""Settings of an encoder that decide what is built; others say how it was trained."""
MOST_BYTES, MOST_SIDE, MOST_NUMBERS = 2**31, 1024, 200_000_000
"""Bytes of a file, side of pictures, weights of an encoder: beyond them no Mixer needs the memory."""
KINDS = (torch.float16, torch.bfloat16, torch.float32, torch.int64)


class MixerFile(NamedTuple):
    """What a file holds, checked, before anything is built."""

    network: Network
    weights: str | None
    """Where the encoder's weights come from; None: they are in the file."""
    size: int
    """Short side of the pictures that the encoder looks at."""
    stats: Stats
    """The normalisation that the encoder knows."""
    mixer: MixerConfig
    use: dict[str, Any]
    """Settings of `FrozenMixer`."""
    about: dict[str, Any]
    """Where it comes from."""
    tensors: dict[str, Tensor]

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of `encoder` or `mixer`, by the names that the module knows."""
        return {
            key[len(name) + 1 :]: value for key, value in self.tensors.items() if key.startswith(name + ".")
        }


def read_mixer_file(path: Path) -> MixerFile:
    """A mixer.safetensors of any format; refuses what does not describe a Mixer."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes; a Mixer's file has at most {MOST_BYTES}.")
    tensors, header = read_weights(path)
    check_format(path, header)
    for name, tensor in tensors.items():
        if name.partition(".")[0] not in ("encoder", "mixer"):
            raise ValueError(f"{path} holds {name!r}, which is neither of an encoder nor of a Mixer.")
        if tensor.dtype not in KINDS or not torch.isfinite(tensor).all():
            raise ValueError(
                f"{name!r} in {path} must hold finite numbers of 16 or 32 bits, got {tensor.dtype}."
            )
    try:
        return described(header, tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        words = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ValueError(f"{path} does not describe a Mixer that can be built: {words}.") from error


def check_format(path: Path, header: Mapping[str, Any]) -> None:
    """Refuses a file of the future."""
    version = header.get("format", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"{path} has the format {version!r}, which is no version number.")
    if version > FORMAT:
        raise ValueError(
            f"{path} has format {version} and this samix reads formats up to {FORMAT}: update samix "
            "(pip install -U samix)."
        )


def described(header: Mapping[str, Any], tensors: dict[str, Tensor]) -> MixerFile:
    """The header's values as settings, each checked."""
    encoder = dict(header["encoder"])
    check_known("encoder", encoder, [field.name for field in fields(Network)])
    network = Network(**{name: encoder[name] for name in BUILT_FROM if name in encoder})
    weights = header.get("weights")
    if weights is not None and weights not in REFERENCES:
        raise ValueError(f"unknown weights {suggest(str(weights), REFERENCES)}")
    mean, std = (triple(header[name], name) for name in ("mean", "std"))
    if min(std) <= 0:
        raise ValueError(f"std must be positive, got {list(std)}")
    use, mixer, about = (
        read_use(header.get("use", {})),
        MixerConfig(**header["mixer"]),
        header.get("about", {}),
    )
    return MixerFile(
        network, weights, side(header["size"]), Stats(mean, std), mixer, use, dict(about), tensors
    )


def check_known(group: str, values: Mapping[str, Any], known: list[str]) -> None:
    """Refuses settings that nothing here knows."""
    for name in values:
        if name not in known:
            raise ValueError(f"unknown setting of {group} {suggest(str(name), known)}")


def read_use(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `FrozenMixer`, as far as a file gives them."""
    check_known("use", values, ["alpha", "per_sample", "adjusting"])
    use = dict(values)
    if "alpha" in use:
        if not is_finite(use["alpha"]):
            raise ValueError(f"use.alpha must be a number, got {use['alpha']!r}")
        check_alpha(use["alpha"], "use.alpha")
    if not isinstance(use.get("per_sample", True), bool):
        raise ValueError(f"use.per_sample must be true or false, got {use['per_sample']!r}")
    if "adjusting" in use:
        use["adjusting"] = Adjusting(**use["adjusting"])
    return use


def side(value: Any) -> int:
    """A sensible side of a picture."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_SIDE:
        raise ValueError(f"size must be a whole number from 1 to {MOST_SIDE}, got {value!r}")
    return value


def triple(values: Any, name: str) -> tuple[float, float, float]:
    """Three finite numbers."""
    if not isinstance(values, list) or not TRIPLE.holds(values):
        raise ValueError(f"{name} must be three numbers, got {values!r}")
    first, second, third = (float(value) for value in values)
    return first, second, third


def build_policy(file: MixerFile, path: Path) -> FrozenMixer:
    """The policy that a file describes, in float32 whatever the file holds; draws nothing of the caller's."""
    with seeded(0):
        try:
            encoder = build_reader(file)
            mixer = file.mixer.build(encoder.probe(file.size)[0])
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} does not describe a Mixer that can be built: {error}") from error
    if file.weights is None:
        fill(
            encoder.network, file.part("encoder"), path, "encoder", needed=names_in_reach(encoder, file.size)
        )
    elif file.part("encoder"):
        raise ValueError(f"{path} names the encoder's weights ({file.weights}) and holds some as well.")
    fill(mixer, file.part("mixer"), path, "mixer", needed=set(mixer.state_dict()))
    return FrozenMixer(painter=Painter(encoder, mixer, file.stats, file.size), **file.use)


def build_reader(file: MixerFile) -> Encoder:
    """The encoder that the Mixer reads: fresh, or with the weights that the file names."""
    encoder = build_encoder(file.network, file.size, MOST_NUMBERS)
    if file.weights == "lite0":
        load_lite0(encoder.network, read_torch(lite0_file()))
    return encoder


def named_weights(file: MixerFile) -> str | None:
    """The name of the encoder's weights where they are published ones, untouched by training."""
    if file.weights is not None or find_spec(file.network.name).timm != LITE0:
        return file.weights
    try:
        published = build_reader(file._replace(weights="lite0"))
    except ModuleNotFoundError:  # without the package nobody knows
        return None
    own, held = published.network.state_dict(), file.part("encoder")
    reach = {
        name for name in names_in_reach(published, file.size) if not name.endswith("num_batches_tracked")
    }
    return "lite0" if all(name in held and torch.equal(own[name], held[name]) for name in reach) else None


def fill(module: nn.Module, tensors: dict[str, Tensor], path: Path, what: str, *, needed: set[str]) -> None:
    """Loads weights; those that nothing needs may be missing, and none may be unknown."""
    own = module.state_dict()
    missing, unknown = sorted(needed - tensors.keys()), sorted(tensors.keys() - own.keys())
    if missing or unknown:
        said = [f"{len(missing)} missing, such as {missing[0]!r}"] if missing else []
        said += [f"{len(unknown)} unknown, such as {unknown[0]!r}"] if unknown else []
        raise ValueError(f"the weights in {path} do not fit its {what}: {'; '.join(said)}.")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise ValueError(
                f"the weights in {path} do not fit its {what}: {name!r} is {list(tensor.shape)} and must be "
                f"{list(own[name].shape)}."
            )
    module.load_state_dict(tensors, strict=False)


def write_mixer_file(path: Path, file: MixerFile, *, half: bool = False) -> None:
    """Writes a file in today's format: without what lies behind the layer; `half` stores 16 bits."""
    policy, weights = build_policy(file, path), named_weights(file)
    reach = set() if weights else names_in_reach(build_reader(file), file.size)
    reach = {f"encoder.{name}" for name in reach}
    kept = {name: value for name, value in file.tensors.items() if name in reach or name.startswith("mixer.")}
    adjusting = asdict(policy.adjusting)
    header = {
        "format": FORMAT,
        "encoder": {name: value for name, value in asdict(file.network).items() if name in BUILT_FROM},
        "weights": weights,
        "size": file.size,
        "mean": list(file.stats.mean),
        "std": list(file.stats.std),
        "mixer": asdict(file.mixer),
        "use": {"alpha": policy.alpha, "per_sample": policy.per_sample, "adjusting": adjusting},
        "about": file.about,
    }
    save_weights(path, {name: halved(value) if half else value for name, value in kept.items()}, header)


def halved(tensor: Tensor) -> Tensor:
    """In half precision, unless that would lose the number altogether."""
    if not tensor.is_floating_point():
        return tensor
    small = tensor.half()
    return small if torch.isfinite(small).all() else tensor
