"""Batches as a function of (seed, step): any process can make any batch, so resuming skips nothing.

The pictures of one step are the same global batch however many processes share it; each takes a slice.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from samix.core.seeds import fold, seeded
from samix.core.shapes import Labels
from samix.data.datasets import ImageSet
from samix.data.views import View


class Draw(NamedTuple):
    """What it takes to make one batch."""

    seed: int
    indices: Tensor


class Batch(NamedTuple):
    """Pictures uint8 [B, 3, S, S] and their labels."""

    pictures: Tensor
    labels: Labels


class Batches(Dataset[Batch]):
    """Makes the batch of a `Draw`: picks pictures and applies the view on the draw's own random stream."""

    def __init__(self, images: ImageSet, view: View) -> None:
        self.images, self.view = images, view

    def __getitem__(self, draw: Draw) -> Batch:  # type: ignore[override]
        pictures = self.images.pictures
        picked = (
            pictures[draw.indices]
            if isinstance(pictures, Tensor)
            else [pictures[int(i)] for i in draw.indices]
        )
        with seeded(draw.seed):
            return Batch(self.view(picked), self.images.labels[draw.indices])


class TrainPlan(Sampler[Draw]):
    """The draws of all steps from `start` on: a new order every epoch, full batches only.

    With `repeats` every picture comes so often in a row, in as many views, and an epoch, which stays as long,
    sees only the first pictures of its order (repeated augmentation, arXiv 1901.09335, as in DeiT). Processes
    then take the pictures of a batch in turn, so that repeats go to different ones.
    """

    def __init__(
        self,
        pictures: int,
        batch: int,
        epochs: int,
        *,
        start: int = 0,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        repeats: int = 1,
    ) -> None:
        if batch > pictures:
            raise ValueError(f"batch_size {batch} is larger than the {pictures} training pictures. Lower it.")
        if batch % world:
            raise ValueError(f"batch_size {batch} must be a multiple of the {world} processes that share it.")
        self.pictures, self.batch, self.start = pictures, batch, start
        self.seed, self.rank, self.world, self.repeats = seed, rank, world, repeats
        self.steps_per_epoch = pictures // batch
        self.total = epochs * self.steps_per_epoch

    def __len__(self) -> int:
        return self.total - self.start

    def __iter__(self) -> Iterator[Draw]:
        for step in range(self.start, self.total):
            epoch, position = divmod(step, self.steps_per_epoch)
            if position == 0 or step == self.start:
                generator = torch.Generator().manual_seed(fold(self.seed, "order", epoch))
                order = torch.randperm(self.pictures, generator=generator).repeat_interleave(self.repeats)
            whole = order[position * self.batch : (position + 1) * self.batch]
            yield Draw(fold(self.seed, "view", step, self.rank), self.share(whole))

    def share(self, indices: Tensor) -> Tensor:
        """This process's part of a batch."""
        if self.repeats > 1:
            return indices[self.rank :: self.world]
        return indices.tensor_split(self.world)[self.rank]


class TestPlan(Sampler[Draw]):
    """Every picture once, in order; processes take alternating pictures."""

    __test__ = False

    def __init__(self, pictures: int, batch: int, *, rank: int = 0, world: int = 1) -> None:
        self.chunks = torch.arange(pictures)[rank::world].split(batch)

    def __len__(self) -> int:
        return len(self.chunks)

    def __iter__(self) -> Iterator[Draw]:
        return (Draw(0, chunk) for chunk in self.chunks)


def make_loader(images: ImageSet, view: View, plan: Sampler[Draw], workers: int = 0) -> DataLoader[Batch]:
    """A DataLoader that yields whole batches as the plan orders them.

    What a batch holds does not depend on `workers`, so a machine with fewer cores takes fewer.
    """
    return DataLoader(
        Batches(images, view),
        sampler=plan,
        batch_size=None,
        num_workers=min(workers, os.cpu_count() or 1),
        pin_memory=torch.cuda.is_available(),
        persistent_workers=False,
    )
