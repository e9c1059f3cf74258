"""Recipe: one row of a table as a typed value, and how it becomes a model.

The same value is what a recipe file holds, what the command line overrides field by field, and what
`config.yaml` in a run folder records.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from torch import nn

from samix.data.datasets import Data
from samix.errors import suggest
from samix.methods.augmixing import AugMixing
from samix.methods.mixing import Mixing
from samix.methods.samix import AutoMixed, LearnedMixup, SAMix
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.mixups import MIXUPS, Mixup
from samix.mixups.augmix import AugMix
from samix.nn.encoder import ENCODERS, Encoder, build_encoder
from samix.typing import Stats


@dataclass(frozen=True, kw_only=True)
class Plain:
    """No mixup."""


Policy = Plain | Mixup | LearnedMixup

POLICIES: dict[str, type[Any]] = {
    "plain": Plain,
    **MIXUPS,
    "automix": AutoMixed,
    "samix": LearnedMixup,
}


@dataclass(frozen=True, kw_only=True)
class Network:
    """Which encoder."""

    name: str = "small-resnet"
    """A name of ENCODERS."""
    width: int = 16
    """Channels of the first stage (small-resnet), or a sixth of a token's (small-vit)."""
    drop_path: float = 0.0
    """Stochastic depth, for networks of timm."""

    def __post_init__(self) -> None:
        if self.name not in ENCODERS:
            raise ValueError(f"unknown encoder {suggest(self.name, ENCODERS)}")
        if self.width < 1:
            raise ValueError(f"encoder.width must be at least 1, got {self.width}.")
        if not 0 <= self.drop_path < 1:
            raise ValueError(f"encoder.drop_path must lie in [0, 1), got {self.drop_path}.")
        if self.drop_path and "drop_path_rate" not in ENCODERS[self.name].takes:
            able = ", ".join(name for name, spec in ENCODERS.items() if "drop_path_rate" in spec.takes)
            raise ValueError(
                f"{self.name} has no stochastic depth: leave encoder.drop_path at 0, or take one of {able}."
            )

    def build(self, size: int) -> Encoder:
        """A fresh encoder for pictures of `size` px."""
        spec = ENCODERS[self.name]
        if size % spec.multiple:
            raise ValueError(
                f"{self.name} takes pictures with a side of {spec.multiple} n pixels, got data.size {size}."
            )
        known = {"width": self.width, "size": size, "drop_path_rate": self.drop_path}
        return build_encoder(self.name, **{name: known[name] for name in spec.takes})


OPTIMIZERS = ("sgd", "adamw", "lamb", "lars")


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """How weights move. The Mixer has its own learning rate and momentum."""

    name: str = "sgd"
    """sgd, adamw, lamb or lars."""
    lr: float = 0.1
    """Learning rate of the encoder and its heads at the given batch size."""
    min_lr: float = 0.0
    """Where the encoder's half cosine ends."""
    weight_decay: float = 5e-4
    """Weight decay; adamw, lamb and lars spare biases and norms."""
    momentum: float = 0.9
    """Momentum of sgd and lars."""
    warmup_epochs: float = 0.0
    """Linear warm-up from 0."""
    mixer_lr: float = 0.1
    """Learning rate of the Mixer."""
    mixer_min_lr: float = 0.0
    """Where the Mixer's half cosine ends."""
    mixer_momentum: float = 0.9
    """Momentum of sgd and lars for the Mixer."""
    clip: float | None = None
    """Largest norm of the gradient of encoder and Mixer together; null: no clipping (lamb clips at 1)."""

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise ValueError(f"unknown optimizer {suggest(self.name, OPTIMIZERS)}")
        for name in ("lr", "mixer_lr"):
            if not getattr(self, name) > 0:  # NaN is not
                raise ValueError(f"optimizer.{name} must be positive, got {getattr(self, name)}.")
        for name in ("momentum", "mixer_momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"optimizer.{name} must lie in [0, 1), got {getattr(self, name)}.")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"optimizer.clip must be positive, or null not to clip; got {self.clip}.")
        for name in ("min_lr", "mixer_min_lr", "weight_decay", "warmup_epochs"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"optimizer.{name} must not be negative, got {getattr(self, name)}.")


PRECISIONS = ("32-true", "bf16-mixed", "16-mixed")
ACCELERATORS = ("auto", "cpu", "cuda", "gpu", "mps")
STRATEGIES = ("auto", "ddp")
TRACKERS = ("none", "tensorboard", "wandb")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how fast. What is learned stays the same, apart from rounding, for one process and one part;
    several processes, or parts of a batch, draw their own pairs and norm their own share of a batch."""

    accelerator: str = "auto"
    """auto, cpu, cuda, gpu or mps (Lightning Fabric)."""
    devices: int = 1
    """Processes per node; more than one trains with DDP."""
    nodes: int = 1
    """Number of nodes."""
    strategy: str = "auto"
    """auto or ddp; auto takes ddp for several processes. Momentum copies forbid sharded weights."""
    precision: str = "32-true"
    """32-true, bf16-mixed or 16-mixed (Fabric's names)."""
    threads: int | None = None
    """CPU threads per process; null leaves torch's choice."""
    channels_last: bool = True
    """Memory format of convolutions; faster on most machines."""
    compile: bool = False
    """torch.compile the encoder; pays off in long runs."""
    accumulate: int = 1
    """Split each batch into so many parts, to save memory; batch-norm then sees the parts."""
    tracker: str = "none"
    """tensorboard or wandb (W&B) also show each epoch's row; none leaves it at metrics.csv."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"unknown machine.precision {suggest(self.precision, PRECISIONS)}")
        if self.accelerator not in ACCELERATORS:
            raise ValueError(f"unknown machine.accelerator {suggest(self.accelerator, ACCELERATORS)}")
        if self.strategy not in STRATEGIES:
            raise ValueError(f"unknown machine.strategy {suggest(self.strategy, STRATEGIES)}")
        if self.tracker not in TRACKERS:
            raise ValueError(f"unknown machine.tracker {suggest(self.tracker, TRACKERS)}")
        for name in ("devices", "nodes", "accumulate"):
            if getattr(self, name) < 1:
                raise ValueError(f"machine.{name} must be at least 1, got {getattr(self, name)}.")
        if self.threads is not None and self.threads < 1:
            raise ValueError(
                f"machine.threads must be at least 1, or null for torch's choice; got {self.threads}."
            )


@dataclass(frozen=True, kw_only=True)
class Training:
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
    eval_every: int = 1
    """Test every so many epochs, and in each of the last 10 (pre-training: in the last)."""
    save_every: int = 1
    """Write a checkpoint every so many epochs, and at the end."""
    seed: int = 0
    """Everything random follows from it."""

    choices: ClassVar[dict[str, dict[str, type[Any]]]] = {}
    """Fields whose type is chosen by name, with the names."""

    def __post_init__(self) -> None:
        for name in ("epochs", "eval_every", "save_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.batch_size < 2:
            raise ValueError(
                f"batch_size must be at least 2 (mixing takes two pictures, batch-norm more than one), "
                f"got {self.batch_size}."
            )
        parts = self.machine.devices * self.machine.nodes * self.machine.accumulate
        least = 1 if isinstance(self.mixup, Plain) else 2
        if self.batch_size < least * parts:
            raise ValueError(
                f"batch_size {self.batch_size} in {parts} parts (devices x nodes x accumulate) leaves less "
                f"than {least} to a part: take a larger --batch_size or fewer parts."
            )


@dataclass(frozen=True, kw_only=True)
class Recipe(Training):
    """Supervised training."""

    mixup: Policy = field(default_factory=Plain)
    """How images are mixed; its type is a name of POLICIES."""
    objective: Objective = field(default_factory=Objective)
    """Clean branch, smoothing, binary loss."""

    choices: ClassVar[dict[str, dict[str, type[Any]]]] = {"mixup": POLICIES}


def choice_name(recipe: Training, field_name: str) -> str:
    """The name by which the type of a field was chosen."""
    names = recipe.choices[field_name]
    return next(name for name, kind in names.items() if kind is type(getattr(recipe, field_name)))


def policy_name(recipe: Training) -> str:
    """The name of the recipe's mixup."""
    return choice_name(recipe, "mixup")


def to_dict(recipe: Training) -> dict[str, Any]:
    """The recipe as plain values, the name of every choice among its settings."""
    values = asdict(recipe)
    for name in recipe.choices:
        values[name] = {"name": choice_name(recipe, name)} | values[name]
    return values


def flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """('data.size', 32), ... for nested dictionaries."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def build_model(recipe: Recipe, classes: int, stats: Stats | None = None) -> Supervised | Mixing | SAMix:
    """The model that a recipe describes; `stats` tells policies how its images are normalised."""
    encoder = recipe.encoder.build(recipe.data.size)
    channels, dim = encoder.probe(recipe.data.size)
    branch = recipe.objective.clean_weight > 0 and not isinstance(recipe.mixup, Plain)
    if branch and recipe.objective.clean_crop < 1 and ENCODERS[recipe.encoder.name].one_size:
        raise ValueError(
            f"{recipe.encoder.name} takes pictures of one size only: leave objective.clean_crop at 1, "
            "and save time with objective.clean_fraction."
        )
    clean_head: nn.Module | None = (
        linear_head(dim, classes) if branch and recipe.objective.clean_head else None
    )
    method = Supervised(
        encoder, linear_head(dim, classes), classes, clean_head=clean_head, objective=recipe.objective
    )
    if isinstance(recipe.mixup, LearnedMixup):
        return SAMix(method, recipe.mixup.mixer.build(channels), recipe.mixup)
    if isinstance(recipe.mixup, AugMix):
        return AugMixing(method, recipe.mixup, stats)
    if isinstance(recipe.mixup, Mixup):
        return Mixing(method, recipe.mixup, stats)
    return method


__all__ = [
    "POLICIES",
    "Machine",
    "Network",
    "Optimizer",
    "Plain",
    "Recipe",
    "Training",
    "build_model",
    "to_dict",
]
