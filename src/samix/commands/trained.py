"""A run, loaded again from its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from samix.commands.fields import from_yaml, override
from samix.contract import Model
from samix.core.shapes import Stats
from samix.data import Split
from samix.engine.initial import load_split
from samix.engine.pretraining import Pretraining
from samix.engine.training import Training
from samix.runs.checkpoint import load_checkpoint, restore
from samix.runs.files import DESCRIPTION
from samix.runs.records import read_record


class Trained(NamedTuple):
    """What a run folder holds, with the pictures that it learned from and was tested on."""

    split: Split
    model: Model
    step: int


def check_folder(run: Path) -> None:
    """Refuses a run folder that is not there."""
    if not run.is_dir():
        raise FileNotFoundError(f"{run} is not a run folder. Expected one such as runs/demo/samix/0.")


def read_recipe(run: Path, words: Sequence[str] = ()) -> Training:
    """What a run was trained with; `words` override fields of it."""
    check_folder(run)
    recipe = override(from_yaml(run / "config.yaml"), list(words))
    if not isinstance(recipe, Training):
        raise ValueError(f"{run} is a pre-training and has no classifier. Try `samix knn` or `samix linear`.")
    return recipe


def read_checkpoint(run: Path) -> dict[str, Any]:
    """The last checkpoint of a run, which must have one."""
    found = load_checkpoint(run)
    if found is None:
        raise FileNotFoundError(f"{run} has no checkpoint yet. Train it first with `samix train`.")
    return found


def load_trained(run: Path, recipe: Training) -> Trained:
    """The last checkpoint of a run."""
    found = read_checkpoint(run)
    split = load_split(recipe, run)
    known = found.get("pictures", {}).get("classes", list(split.train.classes))
    if known != list(split.train.classes):
        raise ValueError(f"{run} knows the classes {known}, the pictures have {list(split.train.classes)}.")
    model = recipe.build(len(split.train.classes), split.stats, initial=False)
    restore(model, found["model"], run)
    return Trained(split, model, found["step"])


def load_model(run: Path) -> Model:
    """The model of a run's last checkpoint, with labels or without, in eval mode; no data is read."""
    check_folder(run)
    recipe, found = from_yaml(run / "config.yaml"), read_checkpoint(run)
    pictures = found.get("pictures")
    if pictures is None:
        raise ValueError(f"{run} was trained by an early version, whose checkpoints name no classes.")
    about = read_record(run / DESCRIPTION)
    stats = None if about is None or "mean" not in about else Stats(tuple(about["mean"]), tuple(about["std"]))
    if isinstance(recipe, Training):
        model = recipe.build(len(pictures["classes"]), stats, initial=False)
    else:
        assert isinstance(recipe, Pretraining)
        model = recipe.build(pictures["count"], stats, initial=False)
    restore(model, found["model"], run)
    return model.eval()
