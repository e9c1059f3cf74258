"""The training loop, in the open: batch, losses, one backward, step, momentum.

Batches, augmentation and pairings are functions of (seed, step), so a run that was killed and started
again ends with the same weights as one that was not.
"""

import time
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning_fabric import Fabric
from lightning_fabric.strategies import DDPStrategy
from torch import Tensor, nn

from samix.data.datasets import load_data
from samix.data.loaders import TrainPlan, make_loader
from samix.engine.checkpoint import save_checkpoint, write_text
from samix.engine.config import Training, to_dict
from samix.engine.export import export_weights
from samix.engine.half import avoid_forbidden_tiles
from samix.engine.health import MixerWatch, check_finite, check_weights
from samix.engine.lock import locked
from samix.engine.log import Meter, read_metrics, read_summary, summarize, write_metrics, write_summary
from samix.engine.memory import keep_freed_memory
from samix.engine.optim import build_optimizer, set_learning_rates
from samix.engine.progress import Progress
from samix.engine.resume import resume, snapshot
from samix.engine.samples import measure_following, write_retention, write_samples
from samix.engine.tasks import task_of
from samix.engine.testing import prepared
from samix.engine.tracking import no_tracker, tracking
from samix.methods.base import Losses, mean_losses
from samix.nn.clusters import ClusterMemory
from samix.nn.queue import Queue
from samix.random import fold

Summary = dict[str, Any]


def train(recipe: Training, folder: Path, *, name: str, command: str = "", quiet: bool = False) -> Summary:
    """Trains a recipe in a run folder, going on from what the folder already holds."""
    fabric = make_fabric(recipe)
    fabric.launch()
    if not fabric.is_global_zero:
        return run(fabric, recipe, folder, name, command, quiet=True)
    with locked(folder):
        return run(fabric, recipe, folder, name, command, quiet)


def make_fabric(recipe: Training) -> Fabric:
    """Fabric for the recipe's machine; several processes train with DDP."""
    machine, strategy = recipe.machine, recipe.machine.strategy
    if machine.threads:
        torch.set_num_threads(machine.threads)
    if strategy == "auto" and machine.devices * machine.nodes > 1:
        # A batch may leave a part of the model without gradient (mixer_probability).
        strategy = DDPStrategy(find_unused_parameters=True)  # type: ignore[assignment]
    fabric = Fabric(
        accelerator=machine.accelerator,
        devices=machine.devices,
        num_nodes=machine.nodes,
        strategy=strategy,
        precision=machine.precision,  # type: ignore[arg-type]
    )
    if fabric.device.type == "cpu" and machine.precision != "32-true":
        avoid_forbidden_tiles()
    return fabric


def run(fabric: Fabric, recipe: Training, folder: Path, name: str, command: str, quiet: bool) -> Summary:
    """One process's part of a training run."""
    if fabric.device.type == "cpu":
        keep_freed_memory()
    split, task = load_data(recipe.data), task_of(recipe)
    torch.manual_seed(fold(recipe.seed, "weights"))
    layout = torch.channels_last if recipe.machine.channels_last else torch.contiguous_format
    model = task.build(split).to(memory_format=layout)
    if (
        fabric.world_size > 1
        and fabric.device.type == "cuda"
        and getattr(getattr(model, "method", model), "sync_norm", False)
    ):
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    optimizer = build_optimizer(model.parameter_groups(), recipe.optimizer)
    start = resume(recipe, folder, model, optimizer)
    if fabric.is_global_zero:
        write_text(folder / "config.yaml", yaml.safe_dump(to_dict(recipe), sort_keys=False))
    ignore_memories(model)
    wrapped, optimizer = fabric.setup(model, optimizer)
    task.prepare(fabric, model, split)
    if recipe.machine.compile:
        getattr(model, "method", model).encoder.network.compile()

    plan = TrainPlan(
        len(split.train.labels), recipe.batch_size, recipe.epochs,
        start=start, seed=recipe.seed, rank=fabric.global_rank, world=fabric.world_size,
    )  # fmt: skip
    loader = make_loader(task.images(split), task.view(), plan, recipe.data.workers)
    batches = prepared(fabric, loader, split, recipe)
    rows = read_metrics(folder, start // plan.steps_per_epoch)
    if start == plan.total and (finished := read_summary(folder)):
        return finished
    watch, tracker = MixerWatch(), tracking if fabric.is_global_zero else no_tracker

    with (
        tracker(recipe, folder, name, start // plan.steps_per_epoch) as track,
        Progress(recipe, plan.steps_per_epoch, quiet=quiet) as progress,
    ):
        for epoch in range(start // plan.steps_per_epoch, recipe.epochs):
            model.train()
            meter, began = Meter(), time.monotonic()
            for step in range(epoch * plan.steps_per_epoch, (epoch + 1) * plan.steps_per_epoch):
                share, batch = step / plan.total, next(batches)
                # After the batch: a loader that starts anew draws from the same generator.
                torch.manual_seed(fold(recipe.seed, "step", step, fabric.global_rank))
                set_learning_rates(optimizer, recipe.optimizer, share, recipe.epochs)
                losses = train_step(fabric, wrapped, optimizer, batch, recipe, share)
                check_finite(losses, step, epoch + 1)
                model.after_step(share)
                meter.add(losses)
                progress.step(epoch + 1, step, losses)
            row = meter.row(epoch + 1, plan.steps_per_epoch * recipe.batch_size, began)
            if due(epoch + 1, recipe.eval_every, recipe.epochs, last=task.tested_last):
                row |= task.score(fabric, model, split)
            row["seconds"] = time.monotonic() - began + (rows[-1]["seconds"] if rows else 0)
            rows.append(row)
            progress.epoch(row)
            track(row)
            if fabric.is_global_zero:
                watch.see(row)
                write_metrics(folder, rows)
                if due(epoch + 1, recipe.save_every, recipe.epochs, last=1):
                    check_weights(model, epoch + 1)
                    save_checkpoint(folder, snapshot(recipe, model, optimizer, step + 1))

    summary = summarize(name, recipe, rows, task.summary(fabric, model, split, rows), command)
    following = measure_following(recipe, model, split)
    if following is not None:
        summary["mask"] = following._asdict()
    if fabric.is_global_zero:
        export_weights(folder, recipe, model, split.train.classes)
        write_samples(folder, recipe, model, split)
        write_retention(folder, recipe, model, split)
        write_summary(folder, summary)
    return summary


def ignore_memories(model: nn.Module) -> None:
    """Keeps DDP from sending queues and cluster memories around: all processes change them alike."""
    kept = [
        f"{name}.{buffer}"
        for name, module in model.named_modules()
        if isinstance(module, Queue | ClusterMemory)
        for buffer, _ in module.named_buffers()
    ]
    nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, kept)


def train_step(
    fabric: Fabric, model: Any, optimizer: Any, batch: tuple[Tensor, Tensor], recipe: Training, share: float
) -> Losses:
    """One optimiser step on one batch, in as many parts as the recipe asks."""
    parts = recipe.machine.accumulate
    pieces = list(zip(*(values.chunk(parts) for values in batch), strict=True))
    weighted = []
    for number, (x, y) in enumerate(pieces, start=1):
        with fabric.no_backward_sync(model, enabled=number < len(pieces)):
            losses: Losses = model(x, y, share)
            weight = len(x) / len(batch[0])
            fabric.backward(losses.total * weight)
        weighted.append((losses, weight))
    if recipe.optimizer.clip is not None:
        fabric.clip_gradients(model, optimizer, max_norm=recipe.optimizer.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return mean_losses(weighted)


def due(epoch: int, every: int, epochs: int, last: int) -> bool:
    """Every so many epochs, and in each of the last ones."""
    return epoch % every == 0 or epoch > epochs - last
