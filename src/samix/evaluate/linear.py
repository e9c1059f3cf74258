"""Linear evaluation: a classifier trained with SGD on a frozen encoder, batch-norm with running statistics.

The settings follow the protocols of MoCo (arXiv 1911.05722) and MoCo v3 (arXiv 2104.02057) as SAMix uses
them, and that of SimSiam (arXiv 2011.10566) for the methods without a protocol in the paper. With augmented
views every step runs the encoder; without, its features are computed once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.checks import (
    check_at_least,
    check_below_one,
    check_not_negative,
    check_positive,
    check_positive_share,
    check_words,
)
from samix.core.mixed import check_labels
from samix.core.schedules import cosine
from samix.core.seeds import fold, seeded
from samix.core.shapes import Features, Images, Labels
from samix.data import Data, ImageSet, Split, TrainPlan, ViewName, make_loader, test_view, train_view
from samix.evaluate.accuracy import Score, count, score
from samix.evaluate.features import features_of, on_device
from samix.methods.supervised import linear_head
from samix.nn.frozen import freeze


@dataclass(frozen=True, kw_only=True)
class LinearProbe:
    """How the classifier is trained; the defaults are those for ResNets on ImageNet."""

    epochs: int = 100
    """Passes over the training pictures."""
    batch_size: int = 256
    """Pictures per step."""
    lr: float = 30.0
    """Learning rate at the start, at this batch size."""
    momentum: float = 0.9
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """Weight decay of the classifier."""
    trust: float = 0.0
    """Each parameter moves by this share of its norm times the learning rate (LARC); 0: plain SGD."""
    schedule: Literal["step", "cosine"] = "step"
    """step (lr times `factor` at each milestone) or cosine (to 0); both change once per epoch."""
    milestones: tuple[int, ...] = (60, 80)
    """Epochs after which a step schedule lowers the learning rate."""
    factor: float = 0.1
    """What a milestone multiplies the learning rate by."""
    view: ViewName = "resized-crop"
    """Training view: resized-crop, crop-flip, or none (seen as in testing; features are computed once)."""
    min_scale: float = 0.08
    """Smallest area that resized-crop may take."""
    seed: int = 0
    """Weights, order and views follow from it."""

    def __post_init__(self) -> None:
        # Without a group: `samix linear` takes these fields as --epochs, --lr, ...
        check_words(self, "")
        check_at_least(1, self, "", "epochs", "batch_size")
        check_positive(self, "", "lr", "factor")
        check_below_one(self, "", "momentum")
        check_not_negative(self, "", "weight_decay", "trust")
        check_positive_share(self, "", "min_scale")
        rising = [0, *self.milestones, self.epochs]
        if self.schedule == "step" and any(a >= b for a, b in zip(rising, rising[1:], strict=False)):
            raise ValueError(
                f"milestones must rise inside (0, {self.epochs}), the epochs; got {self.milestones}. "
                "`probe.lasting(epochs)` moves them along."
            )

    def lasting(self, epochs: int) -> "LinearProbe":
        """The same probe over another number of epochs, with the milestones in proportion."""
        moved = {round(milestone * epochs / self.epochs) for milestone in self.milestones}
        return replace(self, epochs=epochs, milestones=tuple(sorted(moved - {0, epochs})))

    def learning_rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        if self.schedule == "cosine":
            return cosine(epoch / self.epochs, self.lr, 0.0)
        return self.lr * self.factor ** sum(milestone <= epoch for milestone in self.milestones)


PROTOCOLS: dict[str, LinearProbe] = {
    "imagenet": LinearProbe(),
    "stl10": LinearProbe(lr=0.1, min_scale=0.2),
    "tiny": LinearProbe(lr=0.1, min_scale=0.2),
    "simsiam": LinearProbe(epochs=90, batch_size=4096, lr=1.6, schedule="cosine", trust=1e-3),
    "vit": LinearProbe(epochs=90, batch_size=1024, lr=12.0, schedule="cosine"),
    "small": LinearProbe(batch_size=50, lr=0.3, schedule="cosine", view="none"),
}


def linear_probe(
    encoder: nn.Module,
    split: Split,
    data: Data,
    probe: LinearProbe,
    *,
    device: torch.device | str = "cpu",
) -> Score:
    """Trains a linear classifier on the encoder's features of the training pictures; scores it on the test.

    `device` is where the encoder lives. Of `data` the size, the test view and the workers count.
    """
    classes = len(split.train.classes)
    for images in (split.train, split.test):
        check_labels(images.labels, classes)
    plan = TrainPlan(len(split.train.labels), probe.batch_size, probe.epochs, seed=fold(probe.seed, "probe"))

    def as_in_testing(images: ImageSet) -> tuple[Features, Labels]:
        return features_of(encoder, images, test_view(data), split.stats, device=device, workers=data.workers)

    if probe.view == "none":
        steps = cached_steps(*as_in_testing(split.train), plan)
    else:
        plain = replace(data, rand_augment=None, jitter=0.0, erasing=0.0)
        view = train_view(replace(plain, view=probe.view, min_scale=probe.min_scale))
        loader = make_loader(split.train, view, plan, data.workers)
        steps = fresh_steps(encoder, on_device(loader, split.stats, device))
    test, labels = as_in_testing(split.test)
    with seeded(fold(probe.seed, "head")):
        head = linear_head(test.shape[1], classes).to(device)
    fit(head, steps, probe, plan.steps_per_epoch)
    with torch.no_grad():
        return score(count(head(test), labels))


def fit(
    head: nn.Linear, steps: Iterable[tuple[Features, Labels]], probe: LinearProbe, steps_per_epoch: int
) -> None:
    """SGD with cross-entropy, one step per batch of features."""
    decay = 0.0 if probe.trust else probe.weight_decay  # LARC's own decay comes before its scale
    optimizer = torch.optim.SGD(head.parameters(), lr=probe.lr, momentum=probe.momentum, weight_decay=decay)
    for step, (features, labels) in enumerate(steps):
        optimizer.param_groups[0]["lr"] = probe.learning_rate(step // steps_per_epoch)
        F.cross_entropy(head(features), labels).backward()
        if probe.trust:
            adapt_gradients(head, probe.trust, probe.weight_decay)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if not all(parameter.isfinite().all() for parameter in head.parameters()):
        raise ArithmeticError(
            f"the classifier's weights are not finite: lr {probe.lr} is too large. Lower it."
        )


@torch.no_grad()
def adapt_gradients(head: nn.Module, trust: float, weight_decay: float) -> None:
    """LARC: g <- (g + wd w) trust |w| / (|g| + wd |w|), of every parameter; as it is where a norm is 0.

    The first step of a bias, which starts at 0, is therefore one of plain SGD, as in apex.
    """
    for weight in head.parameters():
        assert weight.grad is not None
        size, slope = weight.norm(), weight.grad.norm()
        if size > 0 and slope > 0:
            weight.grad.add_(weight, alpha=weight_decay).mul_(trust * size / (slope + weight_decay * size))


def cached_steps(
    features: Float[Tensor, "N D"], labels: Int[Tensor, "N"], plan: TrainPlan
) -> Iterator[tuple[Features, Labels]]:
    """The plan's batches out of features that are there already."""
    for draw in plan:
        chosen = draw.indices.to(features.device)
        yield features[chosen], labels[chosen]


def fresh_steps(
    encoder: nn.Module, batches: Iterable[tuple[Images, Labels]]
) -> Iterator[tuple[Features, Labels]]:
    """The features of every batch, computed when it comes."""
    for images, labels in batches:
        with freeze(encoder), torch.no_grad():
            features = encoder(images).float()
        yield features, labels


__all__ = ["PROTOCOLS", "LinearProbe", "linear_probe"]
