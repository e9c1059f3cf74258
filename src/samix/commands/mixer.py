"""samix mixer --data.root PICTURES: a Mixer for one's own pictures, trained in minutes and exported."""

import math
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import torch

from samix.commands import pretrain, train
from samix.commands.launch import Command, launch
from samix.core.distributed import rank
from samix.core.words import suggest
from samix.data.folders import ENDINGS, find_pictures
from samix.engine.recipe import Recipe
from samix.learned import ClusterMixup
from samix.nn.stages import stages_of
from samix.nn.zoo import Network
from samix.recipes import find_pretraining, find_recipe
from samix.recipes.mixers import STEPS
from samix.runs.exporting import export_mixer, figures_of
from samix.runs.folder import read_run

HELP = """usage: samix mixer --data.root PICTURES [--mixup NAME] [--out RUN] [--field value ...]

Train a Mixer for pictures of yours, draw its masks and export it. A trained EfficientNet-Lite0 stays as it
is, and the Mixer learns to keep what that network knows the pictures by (pip install 'samix[lite0]').

  --data.root PICTURES   a folder per class, or pictures without labels, in folders or not; or a pack (.npz)
  --mixup NAME           samix (with labels), samix-i or samix-c (without); default: samix where PICTURES has
                         class folders, samix-i elsewhere
  --encoder.name, --encoder.weights
                         another network (timm:NAME) and its weights (timm, a run, a file; null: it learns)
  --out RUN              run folder (default: runs/mixer/samix/0, without labels runs/ssl-mixer/...)
  --seeds, --devices, --quiet, and every field of the recipe: samix train mixer/samix --help,
                         samix pretrain ssl-mixer/moco-v2+samix-i --help

The number of epochs follows from that of the pictures, so that short and long runs take about 500 steps.

examples:
  samix mixer --data.root my/pictures
  samix mixer --data.root my/pictures --mixup samix-c --out runs/mine
  samix mixer --data.root my/pictures --encoder.name timm:resnet50 --encoder.weights timm --data.size 160"""

MIXUPS: dict[str, tuple[Command, str]] = {
    "samix": (train.COMMAND, "mixer/samix"),
    "samix-i": (pretrain.COMMAND, "ssl-mixer/moco-v2+samix-i"),
    "samix-c": (pretrain.COMMAND, "ssl-mixer/moco-v2+samix-c"),
}
"""What trains each, and its recipe."""
PER_CLUSTER, SMALLEST = 20, 5
"""Pictures of a cluster on average, and at least, where there are few."""
SHOWN = ("evidence", "correlation", "gap", "deviation", "top1")
"""Figures to print, in this order."""


def run(words: list[str]) -> None:
    """Trains, exports and says where the Mixer is, how it is and how to use it."""
    if "-h" in words or "--help" in words:
        print(HELP)
        return
    mixup, rest = take_mixup(words)
    name, root = value_of(rest, "data.name"), value_of(rest, "data.root")
    if name is None and root is None:
        raise ValueError(
            "name the pictures: samix mixer --data.root FOLDER, one folder per class or without."
        )
    if mixup is None:
        labelled = name != "pictures" if name or root is None else has_classes(Path(root))
        mixup = "samix" if labelled else "samix-i"
    if mixup not in MIXUPS:
        raise ValueError(f"unknown mixup of a Mixer {suggest(mixup, MIXUPS)}")
    command, recipe = MIXUPS[mixup]
    folders = launch(command, [recipe, *fit_words(mixup, rest), *rest])
    if rank() == 0:
        for folder in folders:
            print(finish(folder))


def finish(folder: Path) -> str:
    """Exports the Mixer of a run; where it is, how it is, how to use it."""
    exported, figures = export_mixer(folder), figures_of(read_run(folder))
    size = exported.weights.stat().st_size / 1000
    told = ", ".join(f"{name} {figures[name]:.3f}" for name in SHOWN if name in figures)
    source = exported.weights.parent
    loaded = f'samix.Mix(samix.load_mixer("{source}"), classes=N)'
    return (
        f"Mixer: {exported.weights} ({size:.0f} kB), its masks: {folder / 'samples' / 'mixed.png'}\n"
        f"figures: {told}\n"
        f"use it: {loaded}, or --mixup samix-p --mixup.mixer {source}"
    )


def take_mixup(words: list[str]) -> tuple[str | None, list[str]]:
    """The value of --mixup, and the other words."""
    for place, word in enumerate(words):
        if word.startswith("--mixup="):
            return word.partition("=")[2], words[:place] + words[place + 1 :]
        if word == "--mixup":
            return (words[place + 1] if place + 1 < len(words) else ""), words[:place] + words[place + 2 :]
    return None, words


def value_of(words: list[str], field: str) -> str | None:
    """What `--field value` or `--field=value` says last; None where nothing does."""
    found = None
    for place, word in enumerate(words):
        if word == f"--{field}":
            found = "".join(words[place + 1 : place + 2])
        elif word.startswith(f"--{field}="):
            found = word.partition("=")[2]
    return found


def has_classes(root: Path) -> bool:
    """Whether pictures come with labels: train/, or several folders without pictures beside them, or in a
    pack."""
    if root.is_file():
        try:
            with ZipFile(root) as pack:
                return {"train_labels.npy", "val_labels.npy"} <= set(pack.namelist())
        except BadZipFile as error:
            raise ValueError(f"data.root {root} is neither a folder nor a pack (.npz).") from error
    if not root.is_dir():
        raise FileNotFoundError(f"data.root {root} is not there. It should be a folder of pictures.")
    entries = [entry for entry in root.iterdir() if not entry.name.startswith(".")]
    if any(entry.suffix.lower() in ENDINGS and not entry.is_dir() for entry in entries):
        return False
    return (root / "train").is_dir() or sum(entry.is_dir() for entry in entries) > 1


def fit_words(mixup: str, words: list[str]) -> list[str]:
    """Fields that follow from the pictures and the network, for the user's own words to come behind."""
    command, name = MIXUPS[mixup]
    recipe = (find_recipe if command is train.COMMAND else find_pretraining)(name)[1]
    fitted = fit_encoder(recipe, words)
    root = value_of(words, "data.root")
    if root is None or not Path(root).is_dir():
        return fitted
    pictures = len(find_pictures(Path(root)))
    batch = value_of(words, "batch_size") or ""
    epochs = enough_epochs(recipe, pictures, int(batch) if batch.isdigit() else recipe.batch_size)
    fitted += ["--epochs", str(epochs)]
    if isinstance(recipe.mixup, ClusterMixup) and pictures < recipe.mixup.clusters.count * PER_CLUSTER:
        count = max(2, pictures // PER_CLUSTER)
        smallest = max(1, min(SMALLEST, pictures // count))
        fitted += ["--mixup.clusters.count", str(count), "--mixup.clusters.min_size", str(smallest)]
    return fitted


def fit_encoder(recipe: Recipe, words: list[str]) -> list[str]:
    """Another network with weights is kept still as a whole, one without learns."""
    weights, name = value_of(words, "encoder.weights"), value_of(words, "encoder.name")
    if weights in ("null", "None"):
        return ["--encoder.frozen", "0", "--encoder.freeze_norm", "false"]
    if name is None or name == recipe.encoder.name:
        return []
    if weights is None:
        raise ValueError(
            f"name the weights of {name}, too: --encoder.weights timm, a run or a file; or null."
        )
    size = value_of(words, "data.size") or ""
    with torch.device("meta"):
        built = Network(name=name).build(int(size) if size.isdigit() else recipe.data.size)
    return ["--encoder.frozen", str(len(stages_of(built.network)))]


def enough_epochs(recipe: Recipe, pictures: int, batch: int) -> int:
    """Epochs of about STEPS steps, and not fewer than the recipe's own."""
    return max(recipe.epochs, math.ceil(STEPS / max(pictures // max(batch, 1), recipe.min_steps, 1)))
