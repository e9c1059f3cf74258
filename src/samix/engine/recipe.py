"""Recipe: what every run is told, as a typed value.

The same value is what a recipe file holds, what the command line overrides field by field, and what
`config.yaml` in a run folder records. `Training` (training.py) learns labels, `Pretraining`
(pretraining.py) does without.
"""

import warnings
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from samix.contract import Plain
from samix.core.checks import check_at_least, check_not_negative
from samix.data.datasets import Data
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.nn.zoo import Network, find_spec


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What every run has: data, encoder, a mixup, optimisation and a machine."""

    data: Data = field(default_factory=Data)
    """The pictures."""
    encoder: Network = field(default_factory=Network)
    """The network."""
    mixup: Any = field(default_factory=Plain)
    """How images are mixed; its type is one of `choices`."""
    optimizer: Optimizer = field(default_factory=Optimizer)
    """How weights move."""
    machine: Machine = field(default_factory=Machine)
    """Where it runs."""
    epochs: int = 100
    """Passes over the training pictures."""
    batch_size: int = 100
    """Pictures per step, over all processes."""
    min_steps: int = 0
    """Steps that an epoch has at least: with few pictures batches are smaller than batch_size; 0: never."""
    eval_every: int = 1
    """Epochs between two tests; the last ones are tested anyway (`tested_last`; pre-training: one)."""
    save_every: int = 1
    """Epochs between two checkpoints; there is one at the end anyway."""
    seed: int = 0
    """Everything random follows from it."""

    choices: ClassVar[dict[str, dict[str, type[Any]]]] = {}
    """Fields whose type is chosen by name, with the names."""

    command: ClassVar[str]
    """The command that trains such a recipe."""

    def __post_init__(self) -> None:
        check_at_least(1, self, "", "epochs", "eval_every", "save_every")
        check_not_negative(self, "", "min_steps")
        check_tested_size(self.data, self.encoder)
        if self.batch_size < 2:
            raise ValueError(
                f"batch_size must be at least 2 (mixing takes two pictures, batch-norm more than one), "
                f"got {self.batch_size}."
            )
        parts, least = self.machine.processes * self.machine.accumulate, 2 if self.mixup.mixes else 1
        if self.batch_size < least * parts:
            raise ValueError(
                f"batch_size {self.batch_size} in {parts} parts (devices x nodes x accumulate) leaves less "
                f"than {least} to a part: take a larger --batch_size or fewer parts."
            )


def check_tested_size(data: Data, encoder: Network) -> None:
    """Refuses tests at a size that the network does not take."""
    spec = find_spec(encoder.name)
    if data.tested_size == data.size:
        return
    if spec.one_size:
        raise ValueError(
            f"{encoder.name} takes pictures of the size alone that it is trained on ({data.size}): leave "
            f"data.test_size at null, got {data.test_size}."
        )
    if data.tested_size % spec.multiple:
        raise ValueError(
            f"{encoder.name} takes pictures with a side of {spec.multiple} n pixels, "
            f"got data.test_size {data.test_size}."
        )


def fit_batch(recipe: Recipe, pictures: int) -> Recipe:
    """The recipe with batches that leave `min_steps` steps to an epoch, at least one; or as it is."""
    steps = max(recipe.min_steps, 1)
    if pictures // recipe.batch_size >= steps:
        return recipe
    parts = recipe.machine.processes * recipe.machine.accumulate
    batch = pictures // steps // parts * parts
    return replace(recipe, batch_size=max(batch, 2 * parts))


def warn_of_batch(asked: Recipe, fitted: Recipe, pictures: int) -> None:
    """Says that batches are smaller than asked for because there are fewer pictures."""
    if asked.batch_size > pictures and not asked.min_steps:
        warnings.warn(
            f"batch_size is {fitted.batch_size} instead of {asked.batch_size}, because there are only "
            f"{pictures} training pictures; optimizer.lr stays as it is.",
            stacklevel=2,
        )


def choice_name(recipe: Recipe, field_name: str) -> str:
    """The name by which the type of a field was chosen."""
    names = recipe.choices[field_name]
    return next(name for name, kind in names.items() if kind is type(getattr(recipe, field_name)))


def policy_name(recipe: Recipe) -> str:
    """The name of the recipe's mixup."""
    return choice_name(recipe, "mixup")


def to_dict(recipe: Recipe) -> dict[str, Any]:
    """The recipe as plain values, the name of every choice among its settings."""
    values = asdict(recipe)
    for name in recipe.choices:
        values[name] = {"name": choice_name(recipe, name)} | values[name]
    return values
