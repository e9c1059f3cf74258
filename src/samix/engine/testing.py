"""Testing a model on a dataset's test pictures, over all heads and processes."""

from collections.abc import Iterable, Iterator

import torch
from lightning_fabric import Fabric
from torch import Tensor

from samix.contract import Classifies, Model
from samix.data.datasets import Split
from samix.data.loaders import Batch, TestPlan, make_loader
from samix.data.views import normalize, test_view
from samix.engine.averaging import all_heads
from samix.engine.recipe import Recipe
from samix.engine.step import NonFiniteLossError
from samix.evaluate.accuracy import Counts, Score, count, score, total
from samix.runs.records import Row

TEST_BATCH = 250


def on_device(
    fabric: Fabric, batches: Iterable[Batch], split: Split, recipe: Recipe
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches on the training device, normalised there, in the wanted memory format."""
    for batch in batches:
        pictures, labels = fabric.to_device(tuple(batch))
        images = normalize(pictures, split.mean, split.std)
        yield images.contiguous(memory_format=recipe.machine.layout), labels


@torch.no_grad()
def evaluate(fabric: Fabric, model: Model, split: Split, recipe: Recipe) -> dict[str, Score]:
    """Scores of every head on the test pictures; the first head is the one to report."""
    if not isinstance(model, Classifies):
        raise TypeError(f"{type(model).__name__} has no heads to test by their accuracy.")
    training = model.training
    model.eval()
    plan = TestPlan(len(split.test.labels), TEST_BATCH, rank=fabric.global_rank, world=fabric.world_size)
    loader = make_loader(split.test, test_view(recipe.data), plan, recipe.data.workers)
    counts: dict[str, list[Counts]] = {}
    for images, labels in on_device(fabric, loader, split, recipe):
        with fabric.autocast():
            heads = all_heads(model, images)
        for head, logits in heads.items():
            if not logits.isfinite().all():
                raise NonFiniteLossError(
                    f"the logits of {head} are not finite: the weights have blown up. The last checkpoint is "
                    "untouched. Try a smaller --optimizer.lr or --optimizer.clip 5."
                )
            counts.setdefault(head, []).append(count(logits, labels))
    model.train(training)
    return {head: score(sum_over_processes(fabric, total(parts))) for head, parts in counts.items()}


def sum_over_processes(fabric: Fabric, counts: Counts) -> Counts:
    """The counts of all processes together."""
    if fabric.world_size == 1:
        return counts
    reduced = fabric.all_reduce(tuple(counts), reduce_op="sum")
    return Counts(*reduced)  # type: ignore[misc]


def head_scores(scores: dict[str, Score]) -> Row:
    """The reported head as top1, top5, ece, cross_entropy; every further head as top1_<head>."""
    (_, reported), *others = scores.items()
    return reported._asdict() | {f"top1_{head}": other.top1 for head, other in others}
