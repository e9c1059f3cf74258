"""The training loop, in the open: batch, losses, one backward, step, momentum.

Batches, augmentation and pairings are functions of (seed, step), so a run that was killed and started
again ends with the same weights as one that was not.
"""

import time
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from samix.data.datasets import Split, load_data
from samix.data.loaders import TrainPlan, make_loader
from samix.engine.checkpoint import save_checkpoint
from samix.engine.config import Training
from samix.engine.export import export_weights
from samix.engine.health import check_finite, check_weights
from samix.engine.lock import locked
from samix.engine.log import (
    Meter,
    begin,
    check_complete,
    read_metrics,
    started,
    summarize,
    write_metrics,
    write_summary,
)
from samix.engine.optim import set_learning_rates
from samix.engine.progress import Progress
from samix.engine.records import SUMMARY, read_record
from samix.engine.resume import snapshot
from samix.engine.samples import measure_following, write_retention, write_samples
from samix.engine.setup import make_fabric, prepare, share_buffers
from samix.engine.tasks import task_of
from samix.engine.testing import prepared
from samix.engine.tracking import no_tracker, tracking
from samix.methods.base import Losses, mean_losses
from samix.methods.watch import MixerWatch
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


def run(fabric: Fabric, recipe: Training, folder: Path, name: str, command: str, quiet: bool) -> Summary:
    """One process's part of a training run."""
    split, task = load_data(recipe.data), task_of(recipe)
    model, wrapped, optimizer, start = prepare(fabric, recipe, folder, task, split)
    plan = TrainPlan(
        len(split.train.labels), recipe.batch_size, recipe.epochs,
        start=start, seed=recipe.seed, rank=fabric.global_rank, world=fabric.world_size,
    )  # fmt: skip
    loader = make_loader(task.images(split), task.view(), plan, recipe.data.workers)
    batches = prepared(fabric, loader, split, recipe)
    rows = read_metrics(folder, start // plan.steps_per_epoch)
    if start == plan.total and (finished := read_record(folder / SUMMARY)):
        return finished
    record = started(folder, name, command, split, resumed=start > 0)
    if start == plan.total:
        check_complete(folder, rows, recipe)
    elif fabric.is_global_zero:
        begin(folder, recipe, record)
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
            share_buffers(fabric, model)
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
                    precision = fabric.strategy.precision
                    save_checkpoint(folder, snapshot(recipe, split, model, optimizer, precision, step + 1))

    summary = summarize(record, recipe, rows, task.summary(fabric, model, split, rows))
    following = measure_following(recipe, model, split)
    if following is not None:
        summary["mask"] = following._asdict()
    if fabric.is_global_zero:
        leave_behind(folder, recipe, model, split, summary)
    return summary


def leave_behind(folder: Path, recipe: Training, model: Any, split: Split, summary: Summary) -> None:
    """What a finished run hands over; the summary comes last, because it says that all is there."""
    export_weights(folder, recipe, model, split.train.classes)
    write_samples(folder, recipe, model, split)
    write_retention(folder, recipe, model, split)
    write_summary(folder, summary)


def train_step(
    fabric: Fabric, model: Any, optimizer: Any, batch: tuple[Tensor, Tensor], recipe: Training, share: float
) -> Losses:
    """One optimiser step on one batch, in as many parts as the recipe asks."""
    parts = recipe.machine.accumulate
    pieces = list(zip(*(values.tensor_split(parts) for values in batch), strict=True))
    weighted = []
    for number, (x, y) in enumerate(pieces, start=1):
        with fabric.no_backward_sync(model, enabled=number < len(pieces)):
            losses: Losses = model(x, y, share)
            weight = len(x) / len(batch[0])
            fabric.backward(losses.total * weight)
        weighted.append((losses, weight))
    if recipe.optimizer.clip is not None:
        # Not finite: float16 skips such a step by itself, and otherwise `check_finite` says more.
        fabric.clip_gradients(model, optimizer, max_norm=recipe.optimizer.clip, error_if_nonfinite=False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return mean_losses(weighted)


def due(epoch: int, every: int, epochs: int, last: int) -> bool:
    """Every so many epochs, and in each of the last ones."""
    return epoch % every == 0 or epoch > epochs - last
