"""Batches as functions of (seed, step)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.data import loaders
from samix.data.datasets import Data, ImageSet
from samix.data.loaders import Batches, Draw, TestPlan, TrainPlan, make_loader
from samix.data.views import train_view


def image_set(count: int = 20, size: int = 16) -> ImageSet:
    pictures = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8)
    return ImageSet(pictures, torch.arange(count), tuple(str(label) for label in range(count)))


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 30), st.integers(0, 9))
def test_invariant_the_global_batch_does_not_depend_on_the_processes(world, share, spare, seed):
    batch = world * share
    whole = list(TrainPlan(2 * batch + spare, batch, 2, seed=seed))
    parts = [
        list(TrainPlan(2 * batch + spare, batch, 2, seed=seed, rank=rank, world=world))
        for rank in range(world)
    ]
    for step, draw in enumerate(whole):
        together = torch.cat([part[step].indices for part in parts])
        assert torch.equal(together, draw.indices)
        assert len({part[step].seed for part in parts}) == world


@given(st.integers(2, 40), st.integers(1, 7), st.integers(0, 9))
def test_invariant_every_picture_at_most_once_per_epoch(pictures, batch, seed):
    batch = min(batch, pictures)
    plan = TrainPlan(pictures, batch, 3, seed=seed)
    draws = list(plan)
    assert len(draws) == len(plan) == 3 * (pictures // batch)
    for epoch in range(3):
        steps = draws[epoch * plan.steps_per_epoch : (epoch + 1) * plan.steps_per_epoch]
        indices = torch.cat([draw.indices for draw in steps]).tolist()
        assert len(indices) == len(set(indices)) == plan.steps_per_epoch * batch
        assert min(indices) >= 0 and max(indices) < pictures


@given(st.integers(0, 15), st.integers(0, 1))
def test_invariant_a_start_in_mid_epoch_equals_skipping(start, rank):
    whole = list(TrainPlan(23, 4, 3, seed=1, rank=rank, world=2))
    resumed = list(TrainPlan(23, 4, 3, seed=1, rank=rank, world=2, start=start))
    assert len(resumed) == len(whole) - start
    for draw, expected in zip(resumed, whole[start:], strict=True):
        assert draw.seed == expected.seed
        assert torch.equal(draw.indices, expected.indices)


def test_value_epochs_and_seeds_have_orders_of_their_own():
    orders = [draw.indices.tolist() for draw in TrainPlan(30, 30, 3, seed=0)]
    orders += [draw.indices.tolist() for draw in TrainPlan(30, 30, 1, seed=1)]
    assert len({tuple(order) for order in orders}) == 4


def test_error_batch_larger_than_the_set():
    with pytest.raises(ValueError, match="batch_size 32 is larger than the 20 training pictures"):
        TrainPlan(20, 32, 1)


def test_error_batch_that_the_processes_cannot_share():
    with pytest.raises(ValueError, match="batch_size 9 must be a multiple of the 2 processes"):
        TrainPlan(20, 9, 1, world=2)


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 3))
def test_invariant_the_test_plan_shows_every_picture_once(pictures, batch, world):
    plans = [TestPlan(pictures, batch, rank=rank, world=world) for rank in range(world)]
    shown = [int(i) for plan in plans for draw in plan for i in draw.indices]
    assert sorted(shown) == list(range(pictures))
    assert all(len(draw.indices) <= batch for plan in plans for draw in plan)


def test_value_a_batch_follows_from_its_draw():
    batches = Batches(image_set(), train_view(Data(size=16)))
    draw = Draw(3, torch.tensor([4, 0, 9]))
    torch.manual_seed(0)
    first = batches[draw]
    torch.rand(5)
    again = batches[draw]
    assert torch.equal(first.pictures, again.pictures)
    assert first.labels.tolist() == [4, 0, 9]
    assert not torch.equal(first.pictures, batches[draw._replace(seed=4)].pictures)


def test_value_a_list_of_pictures_gives_the_batches_of_their_tensor():
    images, view = image_set(), train_view(Data(size=16))
    as_list = images._replace(pictures=list(images.pictures))
    draw = Draw(1, torch.tensor([2, 7]))
    assert torch.equal(Batches(images, view)[draw].pictures, Batches(as_list, view)[draw].pictures)


def test_value_workers_give_the_same_batches_as_none():
    images, view = image_set(), train_view(Data(size=16))
    batches = [list(make_loader(images, view, TrainPlan(20, 6, 2), workers)) for workers in (0, 2)]
    assert len(batches[0]) == 6
    for alone, worker in zip(*batches, strict=True):
        assert torch.equal(alone.pictures, worker.pictures)
        assert torch.equal(alone.labels, worker.labels)


def test_value_no_more_workers_than_cores(monkeypatch):
    monkeypatch.setattr(loaders.os, "cpu_count", lambda: 2)
    images, plan = image_set(), TestPlan(20, 2)
    loaded = [make_loader(images, torch.stack, plan, workers) for workers in (0, 1, 8)]
    assert [loader.num_workers for loader in loaded] == [0, 1, 2]


def repeated_order(pictures: int, batch: int, repeats: int, seed: int) -> list[list[int]]:
    """The batches of an epoch, by a slow loop: every picture of the order so often, until it is full."""
    order = next(iter(TrainPlan(pictures, pictures, 1, seed=seed))).indices.tolist()
    stream = [picture for picture in order for _ in range(repeats)]
    return [stream[k * batch : (k + 1) * batch] for k in range(pictures // batch)]


@given(st.integers(1, 3), st.integers(1, 4), st.integers(2, 4), st.integers(0, 9))
def test_value_repeats_come_in_a_row_and_go_to_processes_in_turn(world, share, repeats, seed):
    batch, pictures = world * share, 5 * world * share + 1
    wanted = repeated_order(pictures, batch, repeats, seed)
    parts = [
        list(TrainPlan(pictures, batch, 1, seed=seed, rank=rank, world=world, repeats=repeats))
        for rank in range(world)
    ]
    for step, whole in enumerate(wanted):
        for rank in range(world):
            assert parts[rank][step].indices.tolist() == whole[rank::world]
            assert len(parts[rank][step].indices) == share


def test_invariant_repeats_resume_in_mid_epoch_and_keep_the_epochs_length():
    whole = list(TrainPlan(23, 4, 3, repeats=3))
    assert len(whole) == 15
    for start in (1, 6, 14):
        rest = list(TrainPlan(23, 4, 3, repeats=3, start=start))
        assert [d.seed for d in rest] == [d.seed for d in whole[start:]]
        assert all(torch.equal(a.indices, b.indices) for a, b in zip(rest, whole[start:], strict=True))
