"""One step: parts of a batch, losses that are not finite said by name, and means of an epoch."""

import time
from dataclasses import replace

import pytest
import torch

from samix.contract import Losses, MixerLog
from samix.data.datasets import load_data
from samix.data.views import normalize
from samix.engine.optim import Optimizer, build_optimizer
from samix.engine.setup import make_fabric
from samix.engine.step import Meter, NonFiniteLossError, check_finite, mean_losses, train_step
from samix.learned.samix import SAMix

SIMPLE = Optimizer(lr=0.5, momentum=0.0, weight_decay=0.0)


# ------------------------------------------------------------ one step


def one_step(recipe, batch=None, parts: int = 1, clip: float | None = None):
    """Weights before and after one step from the recipe's fixed start, and the step's losses."""
    recipe = replace(recipe, machine=replace(recipe.machine, accumulate=parts))
    recipe = replace(recipe, optimizer=replace(recipe.optimizer, clip=clip))
    fabric = make_fabric(recipe)
    fabric.launch()
    split = load_data(recipe.data)
    torch.manual_seed(0)
    model = recipe.build(12)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    wrapped, optimizer = fabric.setup(model, build_optimizer(model.parameter_groups(), recipe.optimizer))
    images = normalize(split.train.pictures, split.mean, split.std)
    batch = batch or (images, split.train.labels)
    losses = train_step(fabric, wrapped, optimizer, batch, recipe, 0.0)
    return before, model.state_dict(), losses


@pytest.mark.parametrize("parts", [2, 5, 24])
def test_value_accumulated_parts_equal_one_batch(parts, tiny, group_norm):
    recipe = tiny("plain", encoder=group_norm, optimizer=SIMPLE, batch_size=24)
    before, whole, losses = one_step(recipe)
    _, accumulated, parts_losses = one_step(recipe, parts=parts)
    moved = max((whole[name] - before[name]).abs().max() for name in whole)
    assert moved > 1e-3
    for name in whole:
        torch.testing.assert_close(accumulated[name], whole[name], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(parts_losses.encoder.detach(), losses.encoder.detach())


def test_value_no_part_is_left_with_one_picture(tiny, monkeypatch):
    seen, real = [], SAMix.forward
    batch = torch.randn(10, 3, 16, 16), torch.arange(10)

    def forward(self, x, y, share):
        seen.append(len(x))
        return real(self, x, y, share)

    monkeypatch.setattr(SAMix, "forward", forward)
    one_step(tiny(batch_size=10), batch, parts=4)
    assert seen == [3, 3, 2, 2]


def test_error_a_part_that_is_not_finite_is_noticed(tiny, group_norm):
    images = torch.randn(8, 3, 16, 16)
    images[0] = 3e38  # a number, but not for long
    batch = (images, torch.arange(8))
    _, _, losses = one_step(tiny("plain", encoder=group_norm, optimizer=SIMPLE), batch, parts=2)
    with pytest.raises(NonFiniteLossError):
        check_finite(losses, 0, 1)


def test_value_clipping_bounds_the_step(tiny, group_norm):
    recipe = tiny("plain", encoder=group_norm, optimizer=SIMPLE)

    def length(clip: float | None) -> float:
        before, after, _ = one_step(recipe, clip=clip)
        return float(sum((after[name] - before[name]).square().sum() for name in after).sqrt())

    free = length(None)
    assert length(1e-3) == pytest.approx(0.5 * 1e-3, rel=1e-3)
    assert length(1e3) == pytest.approx(free, rel=1e-5)


def test_value_parts_without_a_mixer_loss_do_not_dilute_it():
    encoder, mixer = torch.tensor(2.0), torch.tensor(0.5)
    parts = [(Losses(encoder, mixer), 0.25), (Losses(encoder), 0.25), (Losses(encoder, mixer), 0.5)]
    mean = mean_losses(parts)
    assert float(mean.encoder) == 2.0
    assert float(mean.mixer) == 0.5


# ------------------------------------------------------------ losses that are not finite


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


# ------------------------------------------------------------ means of an epoch


def losses(value: float, gamma: float | None = 0.5) -> Losses:
    log = MixerLog(*torch.tensor([value, 2 * value, 3.0, float("nan") if gamma is None else gamma, 0.1, 0.2]))
    return Losses(torch.tensor(value), torch.tensor(10 * value), log=log)


def test_value_meter_averages_each_value_over_the_steps_that_have_it():
    meter = Meter()
    meter.add(losses(1.0))
    meter.add(losses(3.0))
    meter.add(Losses(torch.tensor(8.0)))  # a step that did not train the Mixer
    row = meter.row(4, 300, time.monotonic() - 2)
    assert row["epoch"] == 4
    assert row["loss"] == 4.0 and row["mixer"] == 20.0
    assert row["local"] == 2.0 and row["globally"] == 4.0 and row["gamma"] == 0.5
    assert row["images_per_s"] == pytest.approx(150, rel=0.05)


def test_value_meter_leaves_out_what_the_mixer_lacks():
    meter = Meter()
    meter.add(losses(1.0, gamma=None))
    row = meter.row(1, 10, 0.0)
    assert "gamma" not in row and "gap" in row


def test_value_meter_keeps_no_graph():
    meter = Meter()
    meter.add(Losses(torch.tensor(1.0, requires_grad=True) * 2))
    assert not meter.sums["loss"].requires_grad
