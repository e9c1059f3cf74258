"""What a run does with its pictures: learn labels, or learn without them. The loop knows neither."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Protocol, runtime_checkable

import torch
from lightning_fabric import Fabric
from torch import nn

from samix.contract import Clustered, Model
from samix.core.mixed import check_labels
from samix.core.seeds import fold
from samix.data.datasets import ImageSet, Split
from samix.data.ssl_views import AUGMENTS, two_views
from samix.data.views import View, test_view, train_view
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import Recipe
from samix.engine.testing import evaluate, head_scores
from samix.engine.training import Training
from samix.evaluate.clusters import cluster_quality
from samix.evaluate.features import features_of
from samix.evaluate.knn import knn_accuracy
from samix.evaluate.logistic import logistic_probe
from samix.runs.records import Row, Summary


@runtime_checkable
class Task(Protocol):
    """What the loop asks for."""

    tested_last: int
    """In how many epochs at the end there is a test anyway."""

    def build(self, split: Split, *, initial: bool = True) -> Model:
        """A fresh model, with the weights that its encoder starts from if these count (`initial`)."""

    def images(self, split: Split) -> ImageSet:
        """The training pictures with what the model is told about each."""

    def view(self) -> View:
        """How a batch of them is seen."""

    def prepare(self, fabric: Fabric, model: Model, split: Split) -> None:
        """What must be done before the first step of a run, also of a resumed one."""

    def score(self, fabric: Fabric, model: Model, split: Split) -> Row:
        """The test of an epoch."""

    def summary(self, fabric: Fabric, model: Model, split: Split, rows: list[Row]) -> Summary:
        """What the run came to."""


class Classification:
    """Supervised training, tested by the accuracy of every head."""

    def __init__(self, recipe: Training) -> None:
        self.recipe, self.tested_last = recipe, recipe.tested_last

    def build(self, split: Split, *, initial: bool = True) -> Model:
        if len(split.train.classes) < 2:
            raise ValueError(
                f"the pictures have one class only, {split.train.classes[0]!r}: nothing to tell apart. "
                "`samix pretrain` learns without labels."
            )
        for images in (split.train, split.test):
            check_labels(images.labels, len(split.train.classes))
        return self.recipe.build(len(split.train.classes), split.stats, initial=initial)

    def images(self, split: Split) -> ImageSet:
        return split.train

    def view(self) -> View:
        return train_view(self.recipe.data)

    def prepare(self, fabric: Fabric, model: Model, split: Split) -> None:
        """Nothing."""

    def score(self, fabric: Fabric, model: Model, split: Split) -> Row:
        return head_scores(evaluate(fabric, model, split, self.recipe))

    def summary(self, fabric: Fabric, model: Model, split: Split, rows: list[Row]) -> Summary:
        return accuracies(rows, self.tested_last)


def accuracies(rows: list[Row], last: int = 10) -> Summary:
    """top1 is the median over the last 10 tested epochs (the paper's rule), best the best tested epoch.

    `last` is how many, if not 10. Epochs without a test do not count: where eval_every is the number of
    epochs, best is that of the last ones.
    """
    tested = [row for row in rows if {"top1", "top5", "ece"} <= row.keys()]
    if not tested:
        raise ValueError(
            "no epoch of the run has a test (top1, top5, ece) in its metrics.csv: nothing to sum up."
        )
    final = tested[-last:]
    heads = {key: median(row[key] for row in final) for key in tested[-1] if key.startswith("top1_")}
    top1 = median(row["top1"] for row in final)
    return {
        "top1": top1,
        "median_of": len(final),
        "best": max(row["top1"] for row in tested),
        "last": tested[-1]["top1"],
        "top5": tested[-1]["top5"],
        "ece": tested[-1]["ece"],
        # Rows of runs that an earlier version began do not have it.
        **{name: tested[-1][name] for name in ("cross_entropy",) if name in tested[-1]},
        "heads": {"mix_q": top1} | {key.removeprefix("top1_"): value for key, value in heads.items()},
    }


class SelfSupervision:
    """Pre-training, tested by neighbours in the online encoder's features, at the end by a linear probe.

    A set that is learned without labels may have labelled pictures beside (`Split.labelled`) to be judged by.
    """

    tested_last = 1

    def __init__(self, recipe: Pretraining) -> None:
        self.recipe = recipe
        self.known: list[Any] | None = None

    def build(self, split: Split, *, initial: bool = True) -> Model:
        return self.recipe.build(len(split.train.labels), split.stats, initial=initial)

    def images(self, split: Split) -> ImageSet:
        """Pictures with their positions: what is remembered of a picture is found by it."""
        return split.train._replace(labels=torch.arange(len(split.train.labels)))

    def view(self) -> View:
        pair = AUGMENTS[self.recipe.augment]
        return partial(two_views, size=self.recipe.data.size, pair=pair, small=self.recipe.crops)

    def prepare(self, fabric: Fabric, model: Model, split: Split) -> None:
        """Clusters the pictures as the momentum branch sees them, where pseudo labels are wanted."""
        if isinstance(model, Clustered):
            labels, seed = split.train.labels.to(fabric.device), fold(self.recipe.seed, "clusters")
            model.begin_clusters(
                lambda network: self.features(fabric, network, split.train, split)[0], labels, seed
            )

    def features(self, fabric: Fabric, network: nn.Module, images: ImageSet, split: Split) -> Any:
        """Features and labels of all the pictures in plain view."""
        view = test_view(self.recipe.data)
        workers = self.recipe.data.workers
        return features_of(network, images, view, split.stats, device=fabric.device, workers=workers)

    def score(self, fabric: Fabric, model: Model, split: Split) -> Row:
        """k-NN accuracy, and how well pseudo labels agree with the labels; nothing without labels."""
        row: Row = {}
        classes = len(split.labelled.train.classes)
        if classes < 2:
            return row
        if self.recipe.knn:
            self.known = self.both_sets(fabric, model, split)
            found = knn_accuracy(*self.known[0], *self.known[1], classes=classes, k=self.recipe.knn)
            row |= {"knn": found.top1, "knn_top5": found.top5}
        if isinstance(model, Clustered) and split.known is None:
            row |= cluster_quality(model.cluster_labels().cpu(), split.train.labels)._asdict()
        return row

    def both_sets(self, fabric: Fabric, model: Model, split: Split) -> list[Any]:
        """Features and labels of the labelled training and of the test pictures, by the online encoder."""
        both = (split.labelled.train, split.test)
        return [self.features(fabric, model.encoder, images, split) for images in both]

    def summary(self, fabric: Fabric, model: Model, split: Split, rows: list[Row]) -> Summary:
        """The last tests, and an exact linear probe on the features of the last test."""
        last: Summary = {
            name: rows[-1][name] for name in ("knn", "knn_top5", "nmi", "purity") if name in rows[-1]
        }
        classes = len(split.labelled.train.classes)
        if classes < 2:
            return last
        train, test = self.known or self.both_sets(fabric, model, split)
        found = logistic_probe(*train, *test, classes=classes)
        return last | {"linear": found.top1, "linear_top5": found.top5}


TASKS: dict[str, Callable[[Any], Task]] = {"train": Classification, "pretrain": SelfSupervision}


def task_of(recipe: Recipe) -> Task:
    """What a run of the recipe does with its pictures."""
    return TASKS[recipe.command](recipe)
