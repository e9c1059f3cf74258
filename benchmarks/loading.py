"""Whether loading holds training back: images/s of the loader alone beside images/s of training.

python benchmarks/loading.py            crop-flip at 32 px, resized-crop at 64 px with 0, 1 and 2 workers;
                                        two views for self-supervised training at 32 and 96 px
python benchmarks/loading.py --json     the same as JSON

The loader's side is everything before the model: picking pictures out of memory, the training view,
normalisation, channels-last. The training side is the plain step of the small ResNet (width 16), the
fastest model that any recipe trains, so the hardest one to feed. Both sides take turns; figures are
medians over rounds, and `share` is the median over rounds of loading time to training time per image:
what loading adds without workers. With workers it overlaps, and a share below 1 means that none waits.

Two views have a table of their own: a loader with samix's batched views takes turns with one that applies
torchvision's transforms of the same strength to every picture; both count the pictures that they start from.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from timing import interleave
from torch import Tensor

from samix.data.datasets import Data, ImageSet, Split
from samix.data.loaders import TrainPlan, make_loader
from samix.data.ssl_views import AUGMENTS, Augment, two_views
from samix.data.views import View, train_view
from samix.engine.machine import Machine
from samix.engine.optim import build_optimizer
from samix.engine.setup import make_fabric
from samix.engine.testing import on_device
from samix.engine.training import Training
from samix.nn.zoo import Network

CLASSES = 10
PICTURES = 2_000
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
CASES = {
    "crop-flip 32 px": (Data(size=32, view="crop-flip"), (0,)),
    "resized-crop 64 px": (Data(size=64, view="resized-crop"), (0, 1, 2)),
}
"""Views of the small-image recipes, and the numbers of workers to try."""
PAIRS = ("moco-v2", "small")
"""Two-view pairs to time, each at both sizes."""
PAIR_SIZES = (32, 96)


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    row: str
    workers: int
    loading: float
    """Images/s of the loader alone."""
    training: float
    """Images/s of training on a batch that is already there."""
    share: float
    """Loading time per image divided by training time per image."""


@dataclass(frozen=True)
class PairResult:
    """One line of the table of two views."""

    row: str
    size: int
    loading: float
    """Pictures/s of the loader with samix's views; each picture is seen twice."""
    torchvision: float
    """Pictures/s of the same loader with torchvision's transforms, picture by picture."""
    ratio: float
    """How many times as fast as torchvision."""


def random_split(size: int) -> Split:
    """Random pictures in memory: a view costs the same whatever they show."""
    pictures = torch.randint(256, (PICTURES, 3, size, size), dtype=torch.uint8)
    images = ImageSet(pictures, torch.randint(CLASSES, (PICTURES,)), tuple(map(str, range(CLASSES))))
    return Split(images, images, MEAN, STD)


def batches(recipe: Training, workers: int, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """`count` training batches, ready for the model."""
    split = random_split(recipe.data.size)
    epochs = -(-count // (PICTURES // recipe.batch_size))
    plan = TrainPlan(PICTURES, recipe.batch_size, epochs)
    loader = make_loader(split.train, train_view(recipe.data), plan, workers)
    return on_device(make_fabric(recipe), loader, split, recipe)


def make_step(recipe: Training, batch: tuple[Tensor, Tensor]) -> Callable[[], None]:
    """One plain training step on a fixed batch."""
    model: Any = recipe.build(CLASSES).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = build_optimizer(model.train().parameter_groups(), recipe.optimizer)

    def step() -> None:
        model(*batch, 0.5).total.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def seconds(work: Callable[[], object], times: int) -> float:
    """How long the work takes, mean over `times` calls, which may be none."""
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / max(times, 1)


def measure(row: str, workers: int, options: argparse.Namespace) -> Result:
    """One case: blocks of loading and blocks of training take turns."""
    recipe = Training(
        data=CASES[row][0],
        encoder=Network(name="small-resnet", width=16),
        machine=Machine(accelerator="cpu", threads=options.threads),
        batch_size=options.batch,
    )
    ahead = 2 * workers  # batches that a DataLoader's workers have ready after a turn of training
    loaded = batches(recipe, workers, 1 + options.rounds * (ahead + options.block))
    step = make_step(recipe, next(loaded))
    step()
    loading, training = [], []
    for _ in range(options.rounds):
        seconds(lambda: next(loaded), ahead)  # empties the queue: what follows is the workers' own pace
        loading.append(seconds(lambda: next(loaded), options.block))
        training.append(seconds(step, options.block))
    return Result(
        row=row,
        workers=workers,
        loading=options.batch / statistics.median(loading),
        training=options.batch / statistics.median(training),
        share=statistics.median(a / b for a, b in zip(loading, training, strict=True)),
    )


def torchvision_view(size: int, augment: Augment) -> Callable[[Tensor], Tensor]:
    """The same view out of torchvision's transforms."""
    from torchvision.transforms import v2  # behind samix, which lets it import beside a CPU torch

    taps = max(size // 10 | 1, 3)
    return v2.Compose(
        [
            v2.RandomResizedCrop(size, (augment.min_scale, 1.0), antialias=True),
            v2.RandomApply([v2.ColorJitter(*augment.strengths)], augment.jitter_prob),
            v2.RandomGrayscale(augment.grey_prob),
            v2.RandomApply([v2.GaussianBlur(taps, augment.blur_sigma)], augment.blur_prob),
            v2.RandomSolarize(128, augment.solarize_prob),
            v2.RandomHorizontalFlip(augment.flip_prob),
        ]
    )


def measure_pair(name: str, size: int, options: argparse.Namespace) -> PairResult:
    """One pair of views: a batch of ours and a batch of torchvision's take turns."""
    pair = AUGMENTS[name]
    transforms = [torchvision_view(size, augment) for augment in pair]
    views: dict[str, View] = {
        "samix": lambda pictures: two_views(pictures, size, pair),
        "torchvision": lambda pictures: torch.stack([see(p) for see in transforms for p in pictures]),
    }
    images = random_split(size).train
    epochs = -(-(options.rounds + 1) // (PICTURES // options.batch))
    loaders = {
        side: iter(make_loader(images, view, TrainPlan(PICTURES, options.batch, epochs)))
        for side, view in views.items()
    }
    steps = {side: lambda loader=loader: next(loader) for side, loader in loaders.items()}
    interleave(steps, 1)
    times = interleave(steps, options.rounds)
    return PairResult(
        row=name,
        size=size,
        loading=options.batch / statistics.median(times["samix"]),
        torchvision=options.batch / statistics.median(times["torchvision"]),
        ratio=statistics.median(b / a for a, b in zip(times["samix"], times["torchvision"], strict=True)),
    )


def as_pair_table(results: Sequence[PairResult], batch: int, threads: int) -> Table:
    """The results of two views for a person."""
    table = Table(title=f"Two views in pictures/s, batch {batch}, {threads} thread(s), no workers")
    table.add_column("pair")
    for column in ("size", "samix", "torchvision", "ratio"):
        table.add_column(column, justify="right")
    for r in results:
        table.add_row(r.row, str(r.size), f"{r.loading:,.0f}", f"{r.torchvision:,.0f}", f"{r.ratio:.1f}")
    return table


def as_table(results: Sequence[Result], batch: int, threads: int) -> Table:
    """The results for a person."""
    table = Table(title=f"Loading and training in images/s, batch {batch}, {threads} thread(s)")
    table.add_column("view")
    for column in ("workers", "loader alone", "training", "share"):
        table.add_column(column, justify="right")
    for r in results:
        table.add_row(
            r.row, str(r.workers), f"{r.loading:,.0f}", f"{r.training:,.0f}", f"{100 * r.share:.1f} %"
        )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Loader and training, images per second.")
    parser.add_argument("--rounds", type=int, default=10, help="times that loading and training take turns")
    parser.add_argument("--block", type=int, default=10, help="batches per turn")
    parser.add_argument("--batch", type=int, default=100, help="images per batch")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of the training process")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    results = [measure(row, count, options) for row, (_, workers) in CASES.items() for count in workers]
    torch.set_num_threads(options.threads)
    pairs = [measure_pair(name, size, options) for size in PAIR_SIZES for name in PAIRS]
    if options.json:
        tables = {"rows": results, "pairs": pairs}
        print(json.dumps({key: [asdict(line) for line in lines] for key, lines in tables.items()}, indent=2))
    else:
        Console().print(as_table(results, options.batch, options.threads))
        Console().print(as_pair_table(pairs, options.batch, options.threads))


if __name__ == "__main__":
    main()
