"""From a recipe to what can be trained: Fabric, model, optimizer, and what the folder already holds."""

from pathlib import Path
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies import DDPStrategy
from torch import distributed, nn, optim

from samix.contract import Model
from samix.core.distributed import Replicated
from samix.core.seeds import fold
from samix.data.datasets import Split
from samix.engine.half import avoid_forbidden_tiles
from samix.engine.initial import has_checkpoint
from samix.engine.machine import check_present
from samix.engine.memory import keep_freed_memory
from samix.engine.optim import build_optimizer, find_undecayed, learning_scales
from samix.engine.recipe import Recipe
from samix.engine.resume import resume
from samix.engine.tasks import Task


class Trainee(NamedTuple):
    """A model on its device with all that moves it."""

    model: Model
    """The model itself: its own methods, its own names of weights."""
    wrapped: nn.Module
    """The same behind Fabric, which synchronises gradients: call it for the losses."""
    optimizer: optim.Optimizer
    """The optimizer, behind Fabric too."""
    start: int
    """Steps that are done already."""


def make_fabric(recipe: Recipe) -> Fabric:
    """Fabric for the recipe's machine; several processes train with DDP."""
    machine = recipe.machine
    check_present(machine)
    if machine.threads:
        torch.set_num_threads(machine.threads)
    several = machine.strategy == "ddp" or machine.processes > 1
    fabric = Fabric(
        accelerator=machine.accelerator,
        devices=machine.devices,
        num_nodes=machine.nodes,
        # A batch may leave a part of the model without gradient (mixup.speed.prob).
        strategy=DDPStrategy(find_unused_parameters=True) if several else "auto",
        precision=machine.precision,  # type: ignore[arg-type]
    )
    if fabric.device.type == "cpu" and machine.precision != "32-true":
        avoid_forbidden_tiles()
    return fabric


def prepare(fabric: Fabric, recipe: Recipe, folder: Path, task: Task, split: Split) -> Trainee:
    """Builds what the recipe describes and goes on from the folder's last checkpoint."""
    if fabric.device.type == "cpu":
        keep_freed_memory()
    torch.manual_seed(fold(recipe.seed, "weights"))
    built = task.build(split, initial=not has_checkpoint(folder))
    model = synchronise_norms(fabric, built.to(memory_format=recipe.machine.layout), recipe)  # type: ignore[call-overload]
    exclude_replicated(model)
    groups = model.parameter_groups()
    scales = learning_scales(groups["encoder"], model.encoder.network, recipe.optimizer)
    optimizer = build_optimizer(groups, recipe.optimizer, find_undecayed(model), scales)
    wrapped, optimizer = fabric.setup(model, optimizer)
    # Only now: the optimizer's state is loaded to where the weights are.
    start = resume(recipe, folder, split, model, optimizer, fabric.strategy.precision)
    task.prepare(fabric, model, split)
    if recipe.machine.compile:
        model.encoder.network.compile()
    return Trainee(model, wrapped, optimizer, start)


def synchronise_norms(fabric: Fabric, model: Model, recipe: Recipe) -> Model:
    """Batch norm over all processes where the method or the recipe asks for it and the device can."""
    several = fabric.world_size > 1 and fabric.device.type == "cuda"
    if several and (model.sync_norm or recipe.machine.sync_norm):
        return nn.SyncBatchNorm.convert_sync_batchnorm(model)
    return model


def exclude_replicated(model: nn.Module) -> None:
    """Keeps DDP from sending queues and cluster memories around: all processes change them alike."""
    kept = replicated_buffers(model)
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, kept)


def share_buffers(fabric: Fabric, model: nn.Module) -> None:
    """Gives every process the first one's batch statistics, as DDP does before the next step.

    A test that several processes share is then one of the model that the first of them saves.
    """
    if fabric.world_size == 1:
        return
    kept = replicated_buffers(model)
    for name, buffer in model.named_buffers():
        if name not in kept:
            distributed.broadcast(buffer, src=0)


def replicated_buffers(model: nn.Module) -> list[str]:
    """The names of all buffers that the processes change alike: queues, cluster memories."""
    return [
        f"{name}.{buffer}"
        for name, module in model.named_modules()
        if isinstance(module, Replicated)
        for buffer, _ in module.named_buffers()
    ]
