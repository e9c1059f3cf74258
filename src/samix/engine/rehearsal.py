"""A rehearsal of a recipe: two steps on random pictures of the true shape, to see that it runs and how long.

Nothing is read or written: first weights stay random, pictures are made up, and of a run whose Mixer a recipe
asks for, an untrained Mixer of the same shape takes the place.
"""

import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from samix.contract import Clustered, Model
from samix.data.datasets import IMAGENET_STATS, ImageSet, Split
from samix.data.loaders import TrainPlan, make_loader
from samix.engine.export import export_weights
from samix.engine.optim import set_learning_rates
from samix.engine.recipe import Recipe
from samix.engine.setup import make_fabric, prepare
from samix.engine.step import check_finite, train_step
from samix.engine.tasks import Task, task_of
from samix.engine.testing import on_device
from samix.runs.provenance import peak_memory_mb

STEPS = 2
"""The first one warms up, the last one is timed."""
REMEMBERED = 2000
"""Pictures of a made-up training set, at least; methods that remember each of them need some."""


class Rehearsal(NamedTuple):
    """What a recipe takes."""

    batch: int
    """Pictures in the rehearsed step."""
    parameters: dict[str, int]
    """Trainable numbers by what they belong to: encoder (with heads), mixer, ..."""
    loss: float
    seconds: float
    """One step of that batch on this machine."""
    peak_mb: float | None
    """The most memory of this process so far (of the GPU, where there is one)."""

    def hours(self, pictures: int, epochs: int) -> float:
        """How long so many epochs over so many pictures take at this pace, without tests."""
        return self.seconds / self.batch * pictures * epochs / 3600


class MadeUp:
    """Random pictures [3, side, side], each a function of its position."""

    def __init__(self, count: int, side: int) -> None:
        self.count, self.side = count, side

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: int) -> Tensor:
        generator = torch.Generator().manual_seed(position)
        return torch.randint(256, (3, self.side, self.side), dtype=torch.uint8, generator=generator)


class Rehearsed:
    """A task without first weights, and with clusters of made-up features where it wants clusters."""

    def __init__(self, task: Task) -> None:
        self.task, self.tested_last = task, task.tested_last
        self.images, self.view, self.score, self.summary = task.images, task.view, task.score, task.summary

    def build(self, split: Split, *, initial: bool = True) -> Model:
        """The task's model, as random as torch made it."""
        return self.task.build(split, initial=False)

    def prepare(self, fabric: Fabric, model: Model, split: Split) -> None:
        """Clusters, where the model keeps some: of made-up features, because embedding takes minutes."""
        if not isinstance(model, Clustered):
            return
        count, black = len(split.train.labels), model.encoder.black(split_side(split))

        @torch.no_grad()
        def embed(network: nn.Module) -> Tensor:
            width = network.eval()(black).shape[1]
            network.train()
            return torch.randn(count, width, device=black.device)

        model.begin_clusters(embed, split.train.labels.to(black.device), seed=0)


def split_side(split: Split) -> int:
    """The side of the made-up pictures."""
    pictures = split.train.pictures
    assert isinstance(pictures, MadeUp)
    return pictures.side


def made_up_split(recipe: Recipe, classes: int) -> Split:
    """A training set that the recipe could learn from; nothing is tested."""
    clusters = getattr(recipe.mixup, "clusters", None)
    count = REMEMBERED if clusters is None else max(REMEMBERED, clusters.count * (clusters.min_size + 1))
    labels = torch.arange(count) % classes
    names = tuple(str(label) for label in range(classes))
    images = ImageSet(MadeUp(count, recipe.data.size), labels, names)  # type: ignore[arg-type]
    return Split(images, images, *IMAGENET_STATS)


def on_one_device(recipe: Recipe, batch: int | None) -> Recipe:
    """The recipe with a small batch in one process, in a precision that its device has."""
    least = max(4, getattr(getattr(recipe, "method", None), "norm_groups", 1))
    cpu = recipe.machine.accelerator == "cpu" or not torch.cuda.is_available()
    half = recipe.machine.precision == "16-mixed" and cpu
    machine = replace(
        recipe.machine, devices=1, nodes=1, accumulate=1, strategy="auto", compile=False,
        precision="32-true" if half else recipe.machine.precision,
    )  # fmt: skip
    data = replace(recipe.data, workers=0)
    return replace(recipe, batch_size=batch or least, min_steps=0, machine=machine, data=data)


def rehearse(recipe: Recipe, *, classes: int = 1000, batch: int | None = None) -> Rehearsal:
    """Two steps of the recipe on random pictures; `batch` None: four, or what its batch norm needs."""
    recipe = on_one_device(recipe, batch)
    split, task = made_up_split(recipe, classes), Rehearsed(task_of(recipe))
    fabric = make_fabric(recipe)
    model, wrapped, optimizer, _ = prepare(fabric, recipe, Path("rehearsal"), task, split)
    model.train()
    plan = TrainPlan(len(split.train.labels), recipe.batch_size, 1, seed=recipe.seed)
    loader = make_loader(task.images(split), task.view(), plan)
    for step, pictures in enumerate(islice(on_device(fabric, loader, split, recipe), STEPS)):
        began = time.monotonic()
        set_learning_rates(optimizer, recipe.optimizer, step / plan.total, recipe.epochs)
        losses = train_step(fabric, wrapped, optimizer, pictures, recipe, step / plan.total)
        model.after_step(step / plan.total)
        check_finite(losses, step, 1)  # looks at values, so the device has finished
        seconds = time.monotonic() - began
    counts = {role: sum(p.numel() for p in members) for role, members in model.parameter_groups().items()}
    return Rehearsal(recipe.batch_size, counts, losses.encoder.item(), seconds, peak_memory_mb())


def write_untrained(recipe: Recipe, folder: Path, classes: int = 1000) -> None:
    """The files of an untrained run, for a recipe that asks for its Mixer."""
    recipe = on_one_device(recipe, None)
    split = made_up_split(recipe, classes)
    model = Rehearsed(task_of(recipe)).build(split)
    export_weights(folder, recipe, model, split.train.classes, split.stats)
