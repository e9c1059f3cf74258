"""Where a run's rows go besides metrics.csv: TensorBoard or Weights & Biases, for those who ask for them."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

from samix.core.seeds import fold
from samix.engine.recipe import Recipe, to_dict
from samix.runs.files import own_folder
from samix.runs.records import Row

Track = Callable[[Row], None]
"""Takes an epoch's row."""


@contextmanager
def no_tracker(recipe: Recipe, folder: Path, name: str, start: int) -> Iterator[Track]:
    """metrics.csv is enough."""
    yield lambda row: None


@contextmanager
def tensorboard(recipe: Recipe, folder: Path, name: str, start: int) -> Iterator[Track]:
    """Event files in the run folder; epochs that a crash undid are purged."""
    module = import_optional("torch.utils.tensorboard", "tensorboard")

    def track(row: Row) -> None:
        for key, value in without_epoch(row).items():
            writer.add_scalar(key, value, int(row["epoch"]))

    with module.SummaryWriter(str(own_folder(folder, "tensorboard")), purge_step=start + 1) as writer:
        yield track


@contextmanager
def wandb(recipe: Recipe, folder: Path, name: str, start: int) -> Iterator[Track]:
    """A run of the W&B project samix, the same one each time that the run folder is resumed."""
    module = import_optional("wandb", "wandb")
    identity = f"{fold(recipe.seed, str(folder.resolve())):x}"
    with module.init(
        project="samix", name=f"{name} seed {recipe.seed}", id=identity, resume="allow",
        dir=str(folder), config=to_dict(recipe),
    ) as run:  # fmt: skip
        yield lambda row: run.log(without_epoch(row), step=int(row["epoch"]))


STARTERS = {"none": no_tracker, "tensorboard": tensorboard, "wandb": wandb}


def tracking(recipe: Recipe, folder: Path, name: str, start: int) -> AbstractContextManager[Track]:
    """The recipe's tracker, for a run that goes on after `start` epochs."""
    return STARTERS[recipe.machine.tracker](recipe, folder, name, start)


def without_epoch(row: Row) -> Row:
    """What an epoch measured."""
    return {name: value for name, value in row.items() if name != "epoch"}


def import_optional(module: str, package: str) -> ModuleType:
    """An optional package, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"--machine.tracker {package} needs the package {package} ({error}): pip install {package}. "
            "Without it, metrics.csv in the run folder has every number."
        ) from error
