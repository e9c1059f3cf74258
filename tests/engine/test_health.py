"""Trouble said by name, once."""

import warnings

import pytest
import torch

from samix.engine.health import (
    CollapsedMixerWarning,
    DeafMixerWarning,
    MixerWatch,
    NonFiniteLossError,
    check_finite,
)
from samix.methods.base import Losses

HEALTHY = {"deviation": 0.2, "gap": 0.05, "gamma": 0.7}
CONSTANT = HEALTHY | {"deviation": 0.001}
DEAF = HEALTHY | {"gap": 0.3}


def seen(rows: list[dict[str, float]]) -> list[type]:
    """The warnings that a run with these epochs gives."""
    watch = MixerWatch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row in rows:
            watch.see(row)
    return [warning.category for warning in caught]


def test_value_a_healthy_mixer_and_a_run_without_one_are_left_alone():
    assert seen([HEALTHY] * 20) == []
    assert seen([{"loss": 1.0}] * 20) == []


@pytest.mark.parametrize(("row", "kind"), [(CONSTANT, CollapsedMixerWarning), (DEAF, DeafMixerWarning)])
def test_value_lasting_trouble_is_told_once(row, kind):
    assert seen([row] * 4) == []
    assert seen([HEALTHY, *[row] * 5]) == [kind]
    assert seen([row] * 30) == [kind]
    assert seen(([row] * 4 + [HEALTHY]) * 5) == []


def test_value_both_troubles_are_told():
    assert set(seen([CONSTANT | DEAF | {"deviation": 0.0}] * 6)) == {CollapsedMixerWarning, DeafMixerWarning}


def test_value_warnings_name_the_trouble_and_a_way_out():
    watch = MixerWatch(patience=1)
    with pytest.warns(CollapsedMixerWarning, match=r"trivial solution.*0\.0010.*--mixup"):
        watch.see(CONSTANT)
    with pytest.warns(DeafMixerWarning, match=r"does not follow lam.*0\.30.*gamma 0\.70.*--mixup.adjust"):
        watch.see(DEAF)


def test_value_a_deaf_mixer_without_gamma():
    with pytest.warns(DeafMixerWarning, match="does not follow lam"):
        MixerWatch(patience=1).see({"deviation": 0.2, "gap": 0.3})


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("which", ["encoder", "mixer"])
def test_error_not_finite(bad, which):
    values = {"encoder": torch.tensor(1.5), "mixer": torch.tensor(2.5)} | {which: torch.tensor(bad)}
    lam = torch.tensor([0.25, 0.5, 0.75, 0.875, 1.0])
    with pytest.raises(NonFiniteLossError, match=r"step 7 \(epoch 2\).*lam 0.250, 0.500, 0.750, 0.875\."):
        check_finite(Losses(**values, lam=lam), 7, 2)


def test_error_not_finite_without_a_mixer():
    with pytest.raises(NonFiniteLossError, match="encoder nan, Mixer none, lam none"):
        check_finite(Losses(torch.tensor(float("nan"))), 0, 1)


def test_value_finite_losses_pass():
    check_finite(Losses(torch.tensor(1e30), torch.tensor(-3.0)), 0, 1)
