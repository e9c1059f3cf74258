"""Mixing on a device waits for nothing: shown on the device "meta", which has shapes but no values.

A look at a value there (`.item()`, `nonzero`, a copy to the CPU, an `if`) is an error. `Watch` refuses what
would make a GPU wait besides: draws that are sent with a blocking copy, or that an operator fetches itself.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import samix
from samix import CutMix, Mix

CLASSES = 5
POLICIES: dict[str, Callable[[], Any]] = {
    "mixup": lambda: "mixup",
    "cutmix": lambda: "cutmix",
    "cutmix-minmax": lambda: CutMix(minmax=(0.2, 0.8)),
    "fmix": lambda: "fmix",
    "gridmix": lambda: "gridmix",
    "smoothmix": lambda: "smoothmix",
    "resizemix": lambda: "resizemix",
    "mixup+cutmix": lambda: "mixup+cutmix",
    "switch": lambda: ["mixup", "cutmix", "fmix"],
    "samix-p": samix.load_mixer,
}
MODES = ["batch", "pair", "elem", "half"]


class Watch(TorchDispatchMode):
    """Refuses operators that would stop the host until a GPU has done its work."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        kwargs = kwargs or {}
        devices = {t.device.type for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.ndim}
        assert len(devices) < 2, f"{func} takes tensors of {devices}"
        sends = devices == {"cpu"} and torch.device(kwargs.get("device") or "cpu").type == "meta"
        assert not sends or kwargs.get("non_blocking"), f"{func} sends values and waits"
        return func(*args, **kwargs)


@pytest.fixture(autouse=True)
def no_autocast(monkeypatch):
    """The device "meta" has none."""
    monkeypatch.setattr(torch, "autocast", lambda *args, **kwargs: nullcontext())


@pytest.fixture
def on_meta():
    x = torch.empty(6, 3, 32, 32, device="meta")
    return x, torch.empty(6, dtype=torch.long, device="meta")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_invariant_no_policy_waits_for_the_device(name, mode, on_meta):
    mix = Mix(POLICIES[name](), CLASSES, mode=mode, prob=0.9, smoothing=0.1)
    mix(*on_meta)  # moves a Mixer to the device, once
    for _ in range(4):  # a switch takes its members in turn
        with Watch():
            x, rows = mix(*on_meta)
        assert x.device.type == rows.device.type == "meta"
        assert x.shape[1:] == (3, 32, 32) and rows.shape == (len(x), CLASSES)


@pytest.mark.parametrize("name", ["cutmix", "samix-p"])
def test_invariant_nor_does_undoing_a_normalisation(name, on_meta):
    mix = Mix(POLICIES[name](), CLASSES, mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.2])
    mix(*on_meta)
    with Watch():
        mix(*on_meta)


@pytest.mark.parametrize("per_frame", [False, True])
def test_invariant_nor_do_clips(per_frame):
    x = torch.empty(4, 3, 5, 16, 16, device="meta")
    with Watch():
        mixed = Mix("cutmix", CLASSES, per_frame=per_frame)(
            x, torch.empty(4, dtype=torch.long, device="meta")
        )
    assert mixed[0].shape == x.shape


def test_value_draws_do_not_depend_on_the_device(on_meta):
    x, y = on_meta
    for mode in MODES:
        states = []
        for device in ("cpu", "meta"):
            draw = torch.Generator().manual_seed(1)
            mix = Mix(["mixup", "cutmix"], CLASSES, mode=mode, generator=draw)
            for _ in range(5):
                mix(torch.zeros_like(x, device=device), torch.zeros_like(y, device=device))
            states.append(draw.get_state())
        assert torch.equal(*states)


@pytest.mark.parametrize("look", [lambda y: y.nonzero(), lambda y: int(y[0]), lambda y: y.cpu()])
def test_error_a_look_is_seen_by_these_tests(look, on_meta):
    with pytest.raises((RuntimeError, NotImplementedError)), Watch():
        look(on_meta[1])


def test_error_a_blocking_copy_and_a_hidden_one_are_seen_too(on_meta):
    with pytest.raises(AssertionError, match="waits"), Watch():
        torch.rand(3).to("meta")
    with pytest.raises(AssertionError, match="takes tensors of"), Watch():
        on_meta[0][torch.tensor([1, 0])]
