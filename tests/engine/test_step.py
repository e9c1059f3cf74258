"""Losses that are not finite, said by name."""

import pytest
import torch

from samix.contract import Losses
from samix.engine.step import NonFiniteLossError, check_finite


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
