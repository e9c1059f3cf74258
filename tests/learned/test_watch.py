"""Trouble with a Mixer, said by name and once."""

import warnings

import pytest
import torch

from samix.contract import MixerLog
from samix.learned.watch import CollapsedMixerWarning, DeafMixerWarning, MixerWatch

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


def test_value_the_log_of_a_batch_will_do():
    constant = MixerLog(*torch.tensor([0.5, 1.0, 0.1, 0.7, 0.05, 0.001]))
    watch = MixerWatch(patience=2)
    watch.see(constant)
    watch.see(None)
    with pytest.warns(CollapsedMixerWarning, match=r"0\.0010"):
        watch.see(constant)
