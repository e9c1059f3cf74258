"""The training loop, in the open: batch, losses, one backward, step, momentum.

Batches, augmentation and pairings are functions of (seed, step), so a run that was killed and started
again ends with the same weights as one that was not.
"""

import time
from pathlib import Path

import torch
from lightning_fabric import Fabric

from samix.contract import Model
from samix.core.seeds import fold
from samix.data.datasets import Split
from samix.data.loaders import TrainPlan, make_loader
from samix.engine.averaging import follow_average
from samix.engine.export import export_weights
from samix.engine.initial import load_split
from samix.engine.optim import set_learning_rates
from samix.engine.progress import Progress
from samix.engine.recipe import Recipe, fit_batch, to_dict, warn_of_batch
from samix.engine.resume import snapshot
from samix.engine.samples import measure_evidence, measure_following, write_retention, write_samples
from samix.engine.setup import make_fabric, prepare, share_buffers
from samix.engine.step import Meter, check_finite, check_weights, train_step
from samix.engine.summary import check_complete, describe_start, summarize
from samix.engine.tasks import task_of
from samix.engine.testing import on_device
from samix.engine.tracking import no_tracker, tracking
from samix.learned.watch import MixerWatch
from samix.runs.checkpoint import save_checkpoint
from samix.runs.files import SUMMARY
from samix.runs.lock import locked, unless_refused
from samix.runs.records import (
    Summary,
    begin_run,
    planned_epochs,
    read_metrics,
    read_record,
    write_metrics,
    write_summary,
)


def train(recipe: Recipe, folder: Path, *, name: str, command: str = "", quiet: bool = False) -> Summary:
    """Trains a recipe in a run folder, going on from what the folder already holds."""
    fabric = make_fabric(recipe)
    fabric.launch()
    if not fabric.is_global_zero:
        return run(fabric, recipe, folder, name, command, quiet=True)
    with unless_refused(folder), locked(folder):
        return run(fabric, recipe, folder, name, command, quiet)


def run(fabric: Fabric, recipe: Recipe, folder: Path, name: str, command: str, quiet: bool) -> Summary:
    """One process's part of a training run."""
    split = load_split(recipe, folder)
    recipe, asked = fit_batch(recipe, len(split.train.labels)), recipe
    if fabric.is_global_zero:
        warn_of_batch(asked, recipe, len(split.train.labels))
    task = task_of(recipe)
    model, wrapped, optimizer, start = prepare(fabric, recipe, folder, task, split)
    plan = TrainPlan(
        len(split.train.labels), recipe.batch_size, recipe.epochs,
        start=start, seed=recipe.seed, rank=fabric.global_rank, world=fabric.world_size,
        repeats=recipe.data.repeats,
    )  # fmt: skip
    loader = make_loader(task.images(split), task.view(), plan, recipe.data.workers)
    batches = on_device(fabric, loader, split, recipe)
    rows = read_metrics(folder, start // plan.steps_per_epoch, needed=("epoch", "seconds", "images_per_s"))
    if start == plan.total and (finished := read_record(folder / SUMMARY)):
        return finished
    stats = split.stats if recipe.encoder.weights else None
    record = describe_start(folder, name, command, split, resumed=start > 0, stats=stats)
    if start == plan.total:
        check_complete(folder, rows, recipe)
    # A run that was to go on for more epochs and is asked for its first ones again gets these back.
    if fabric.is_global_zero and (start < plan.total or planned_epochs(folder) != recipe.epochs):
        begin_run(folder, to_dict(recipe), record)
    if 0 < start < plan.total and not quiet:
        print(f"{folder}: goes on after epoch {start // plan.steps_per_epoch} of {recipe.epochs}", flush=True)
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
                follow_average(model)
                meter.add(losses)
                progress.step(epoch + 1, step, losses)
            share_buffers(fabric, model)
            row = meter.row(epoch + 1, plan.steps_per_epoch * recipe.batch_size, began)
            if is_due(epoch + 1, recipe.eval_every, recipe.epochs, last=task.tested_last):
                row |= task.score(fabric, model, split)
            row["seconds"] = time.monotonic() - began + (rows[-1]["seconds"] if rows else 0)
            rows.append(row)
            progress.epoch(row)
            track(row)
            if fabric.is_global_zero:
                watch.see(row)
                write_metrics(folder, rows)
                if is_due(epoch + 1, recipe.save_every, recipe.epochs, last=1):
                    check_weights(model, epoch + 1)
                    precision = fabric.strategy.precision
                    save_checkpoint(folder, snapshot(recipe, split, model, optimizer, precision, step + 1))

    summary = summarize(record, recipe, rows, task.summary(fabric, model, split, rows))
    following = measure_following(recipe, model, split)
    if following is not None:
        summary["mask"] = following._asdict()
    evidence = measure_evidence(recipe, model, split)
    if evidence is not None:
        summary["mask"]["evidence"] = evidence
    if fabric.is_global_zero:
        write_results(folder, recipe, model, split, summary)
    return summary


def write_results(folder: Path, recipe: Recipe, model: Model, split: Split, summary: Summary) -> None:
    """What a finished run hands over; the summary comes last, because it says that all is there."""
    export_weights(folder, recipe, model, split.train.classes, split.stats)
    write_samples(folder, recipe, model, split)
    write_retention(folder, recipe, model, split)
    write_summary(folder, summary)


def is_due(epoch: int, every: int, epochs: int, last: int) -> bool:
    """Whether an epoch is a multiple of `every`, or among the `last` ones."""
    return epoch % every == 0 or epoch > epochs - last
