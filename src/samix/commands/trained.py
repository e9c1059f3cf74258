"""A supervised run, loaded again from its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from samix.commands.fields import from_yaml, override
from samix.contract import Model
from samix.data import Split
from samix.engine.initial import load_split
from samix.engine.training import Training
from samix.runs.checkpoint import load_checkpoint, restore


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


def load_trained(run: Path, recipe: Training) -> Trained:
    """The last checkpoint of a run."""
    found = load_checkpoint(run)
    if found is None:
        raise FileNotFoundError(f"{run} has no checkpoint yet. Train it first with `samix train`.")
    split = load_split(recipe, run)
    known = found.get("pictures", {}).get("classes", list(split.train.classes))
    if known != list(split.train.classes):
        raise ValueError(f"{run} knows the classes {known}, the pictures have {list(split.train.classes)}.")
    model = recipe.build(len(split.train.classes), split.stats, initial=False)
    restore(model, found["model"], run)
    return Trained(split, model, found["step"])
