"""Mixing inside torch.compile: one graph, and with the same seed the eager call's batch."""

import pytest
import torch
from torch._dynamo.testing import CompileCounter

import samix
from samix import CutMix, Mix, ResizeMix

CLASSES = 5


@pytest.fixture(autouse=True)
def fresh(unchecked_shapes):
    """Nothing compiled before; the tests' shape checks are no part of what users compile."""
    torch._dynamo.reset()


def batch():
    return torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(5)), torch.arange(6) % CLASSES


def assert_as_eager(mix: Mix, backend: str = "eager") -> None:
    compiled, results = torch.compile(mix, fullgraph=True, backend=backend), []
    for call in (compiled, mix):
        torch.manual_seed(3)
        results.append(call(*batch()))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
@pytest.mark.parametrize("policy", ["mixup", "cutmix", "fmix", ResizeMix(), CutMix(minmax=(0.2, 0.8))])
def test_value_one_graph_gives_what_the_eager_call_gives(policy, mode):
    assert_as_eager(Mix(policy, CLASSES, mode=mode, smoothing=0.1))


@pytest.mark.parametrize("mode", ["pair", "elem"])
def test_value_so_does_a_switch_per_pair(mode):
    assert_as_eager(Mix(["mixup", "cutmix"], CLASSES, mode=mode))


def test_value_so_does_a_frozen_mixer():
    assert_as_eager(Mix(samix.load_mixer(), CLASSES), backend="aot_eager")


def test_value_a_switch_per_batch_takes_its_members_in_turn():
    """It draws the lam of every member, so other draws than the eager call's follow."""
    counter = CompileCounter()
    mix = Mix({"mixup": 0.25, "cutmix": 0.75}, CLASSES)
    mixed, (x, y) = torch.compile(mix.mixed, fullgraph=True, backend=counter), batch()
    hard = []
    for _ in range(40):
        made = mixed(x, y)
        lam, index = made.pairing
        assert made.mask.shape == (1, 1, 32, 32) and lam.shape == (1,)
        torch.testing.assert_close(made.x, made.mask * x + (1 - made.mask) * x[index])
        torch.testing.assert_close(lam, made.mask.mean().view(1))
        hard.append(bool(((made.mask == 0) | (made.mask == 1)).all()))
    assert 20 <= sum(hard) <= 38  # 30 expected
    assert counter.frame_count == 1  # compiled once


def test_error_labels_out_of_range_are_refused_in_a_graph_too():
    x, y = batch()
    compiled = torch.compile(Mix("mixup", CLASSES - 1), fullgraph=True, backend="eager")
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixup", "cutmix", ["mixup", "cutmix"]])
def test_value_inductor_compiles_it(policy):
    x, y = batch()
    mixed, rows = torch.compile(Mix(policy, CLASSES), fullgraph=True)(x, y)
    assert mixed.shape == x.shape and mixed.isfinite().all()
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(6))
