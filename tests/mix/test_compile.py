"""Mixing inside torch.compile: one graph, and with the same seed the eager call's batch."""

from types import ModuleType
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

CLASSES = 5
MINMAX = ("CutMix", {"minmax": (0.2, 0.8)})


def batch():
    return torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(5)), torch.arange(6) % CLASSES


def build(samix: ModuleType, policy: Any, **options):
    """A Mix of the freshly imported package."""
    if isinstance(policy, tuple):
        policy = getattr(samix, policy[0])(**policy[1])
    return samix.Mix(policy, CLASSES, **options)


def assert_as_eager(mix, backend: str = "eager") -> None:
    compiled, results = torch.compile(mix, fullgraph=True, backend=backend), []
    for call in (compiled, mix):
        torch.manual_seed(3)
        results.append(call(*batch()))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
@pytest.mark.parametrize("policy", ["mixup", "cutmix", "fmix", "resizemix", MINMAX])
def test_value_one_graph_gives_what_the_eager_call_gives(untyped, policy, mode):
    assert_as_eager(build(untyped, policy, mode=mode, smoothing=0.1))


@pytest.mark.parametrize("mode", ["pair", "elem"])
def test_value_so_does_a_switch_per_pair(untyped, mode):
    assert_as_eager(build(untyped, ["mixup", "cutmix"], mode=mode))


def test_value_so_does_a_frozen_mixer(untyped):
    assert_as_eager(build(untyped, untyped.load_mixer(), mean=[0.5] * 3, std=[0.5] * 3))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_value_a_frozen_mixer_with_a_generator_in_every_precision(untyped, dtype):
    """Graph breaks are allowed, other numbers are not."""
    (x, y), policy = batch(), untyped.load_mixer()
    drawn = [torch.Generator().manual_seed(2) for _ in range(2)]
    plain, traced = (build(untyped, policy, mode="elem", generator=generator) for generator in drawn)
    compiled = torch.compile(traced, backend="aot_eager")
    for _ in range(2):
        expected, found = plain(x.to(dtype), y), compiled(x.to(dtype), y)
        assert found[0].dtype == dtype
        torch.testing.assert_close(found, expected)


def test_value_a_switch_per_batch_takes_its_members_in_turn(untyped):
    """It draws the lam of every member, so other draws than the eager call's follow."""
    counter, (x, y) = CompileCounter(), batch()
    mix = build(untyped, {"mixup": 0.25, "cutmix": 0.75})
    mixed, hard = torch.compile(mix.mixed, fullgraph=True, backend=counter), []
    for _ in range(40):
        made = mixed(x, y)
        lam, index = made.pairing
        assert made.mask.shape == (1, 1, 32, 32) and lam.shape == (1,)
        torch.testing.assert_close(made.x, made.mask * x + (1 - made.mask) * x[index])
        torch.testing.assert_close(lam, made.mask.mean().view(1))
        hard.append(bool(((made.mask == 0) | (made.mask == 1)).all()))
    assert 20 <= sum(hard) <= 38  # 30 expected
    assert counter.frame_count == 1  # compiled once


def test_error_labels_out_of_range_are_refused_in_a_graph_too(untyped):
    x, y = batch()
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.compile(build(untyped, "mixup"), fullgraph=True, backend="eager")(x, y + 1)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixup", "cutmix", ["mixup", "cutmix"]])
def test_value_inductor_compiles_it(untyped, policy):
    x, y = batch()
    mixed, rows = torch.compile(build(untyped, policy), fullgraph=True)(x, y)
    assert mixed.shape == x.shape and mixed.isfinite().all()
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(6))
