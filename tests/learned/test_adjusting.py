"""Lambda adjusting: the mean becomes lam, by the two-sided rule of docs/equations.md."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.learned.mixer import Adjusting, adjust_mask
from samix.learned.shifting import balance, shift_mask

unit = st.floats(0, 1, width=32)
pixels = st.lists(unit, min_size=4, max_size=24)


def as_mask(values: list[float]) -> torch.Tensor:
    return torch.tensor(values).view(1, 1, 1, -1)


@given(values=pixels, lam=unit)
def test_invariant_the_mean_becomes_lam_within_the_unit_interval(values, lam):
    adjusted = adjust_mask(as_mask(values), torch.tensor([lam]))
    assert float(adjusted.mean()) == pytest.approx(lam, abs=1e-5)
    assert adjusted.min() >= -1e-7 and adjusted.max() <= 1 + 1e-7


@given(values=pixels, lam=unit)
def test_invariant_the_order_of_pixels_stays(values, lam):
    ordered = as_mask(sorted(values))
    adjusted = adjust_mask(ordered, torch.tensor([lam])).flatten()
    assert (adjusted.diff() >= 0).all()


@given(values=pixels, lam=unit)
def test_invariant_exchanging_the_images_exchanges_the_masks(values, lam):
    mask, lam = as_mask(values), torch.tensor([lam])
    torch.testing.assert_close(adjust_mask(1 - mask, 1 - lam), 1 - adjust_mask(mask, lam), rtol=0, atol=1e-5)


@given(values=pixels, lam=st.floats(0.125, 0.875, width=32))
def test_invariant_adjusting_twice_is_adjusting_once(values, lam):
    lam = torch.tensor([lam])
    once = adjust_mask(as_mask(values), lam)
    torch.testing.assert_close(adjust_mask(once, lam), once, rtol=0, atol=1e-5)


def test_value_against_a_loop():
    masks, lam = (
        torch.rand(6, 1, 3, 5) ** torch.tensor([0.2, 0.5, 1, 2, 4, 8]).view(6, 1, 1, 1),
        torch.rand(6),
    )
    adjusted = adjust_mask(masks, lam)
    sides = set()
    for mask, result, target in zip(masks, adjusted, lam.tolist(), strict=True):
        mean = sum(mask.flatten().tolist()) / mask.numel()
        sides.add(mean > target)
        for before, after in zip(mask.flatten().tolist(), result.flatten().tolist(), strict=True):
            above = before * target / mean
            below = 1 - (1 - before) * (1 - target) / (1 - mean)
            assert after == pytest.approx(above if mean > target else below, abs=1e-5)
    assert sides == {True, False}, "the example should need both sides of the rule"


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_value_a_saturated_constant_mask_becomes_lam(value):
    adjusted = adjust_mask(torch.full((1, 1, 4, 4), value), torch.tensor([0.3]))
    torch.testing.assert_close(adjusted, torch.full((1, 1, 4, 4), 0.3), rtol=0, atol=1e-5)


def test_value_one_lam_serves_the_batch():
    adjusted = adjust_mask(torch.rand(5, 1, 4, 6), torch.tensor([0.4]))
    torch.testing.assert_close(adjusted.mean(dim=(1, 2, 3)), torch.full((5,), 0.4))


@pytest.mark.parametrize("key", ["mocosamix/float1", "mocosamix/auto_margin0"])
@pytest.mark.parametrize("lam", [0.3, 0.55, 0.7])
def test_value_golden_adjusting(golden, key, lam):
    record = golden("c_mask_adjust")
    expected = record[f"{key}/lam{lam}/mask_adjusted"][:, :1]
    adjusted = adjust_mask(record["mask"][:, :1], torch.tensor([lam]))
    torch.testing.assert_close(adjusted, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("mixer", "encoder"), [(0.55, 0.55), (0.3, 0.7), (0.7, 0.3)])
def test_value_golden_supervised_adjusting_uses_the_lam_of_the_mixer(golden, mixer, encoder):
    """O2: the official supervised code adjusts the encoder's mask to the Mixer's lam; the rule is ours."""
    record = golden("c_mask_adjust")
    expected = record[f"automixup/lam_mb{mixer}_lam_bb{encoder}/mask_bb_adjusted"][:, :1]
    adjusted = adjust_mask(record["mask"][:, :1], torch.tensor([mixer]))
    torch.testing.assert_close(adjusted, expected, rtol=0, atol=1e-5)


def loop_shift(values: list[float], lam: float, temperature: float) -> list[float]:
    """Tries shifts in small steps until the mean is lam."""
    logits = [math.log(value / (1 - value)) / temperature for value in values]

    def shifted(shift: float) -> list[float]:
        return [1 / (1 + math.exp(-logit - shift)) for logit in logits]

    steps = [step / 1000 for step in range(-30_000, 30_000)]
    return shifted(min(steps, key=lambda shift: abs(sum(shifted(shift)) / len(values) - lam)))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("lam", [0.1, 0.5, 0.8])
def test_value_shift_against_a_loop(lam, temperature):
    values = [0.05, 0.3, 0.6, 0.9, 0.97]
    found = shift_mask(torch.tensor(values).view(1, 1, 1, 5), torch.tensor([lam]), temperature)
    expected = torch.tensor(loop_shift(values, lam, temperature)).view(1, 1, 1, 5)
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=0)


@given(st.integers(0, 10**6), st.floats(0.01, 0.99))
def test_invariant_a_shifted_mask_has_the_mean_lam_and_the_old_order(seed, lam):
    mask = torch.rand(2, 1, 6, 7, generator=torch.Generator().manual_seed(seed))
    shifted = shift_mask(mask, torch.tensor([lam]))
    torch.testing.assert_close(shifted.mean(dim=(1, 2, 3)), torch.full((2,), lam), atol=1e-4, rtol=0)
    order = mask.flatten(1).argsort(dim=1)
    assert (shifted.flatten(1).gather(1, order).diff(dim=1) >= 0).all()


def test_value_a_shifted_mask_stays_decided_where_a_scaled_one_turns_grey():
    mask = torch.cat([torch.full((1, 1, 8, 4), 0.02), torch.full((1, 1, 8, 4), 0.98)], dim=3)
    mask = mask + 0.01 * torch.rand(mask.shape, generator=torch.Generator().manual_seed(0))
    lam = torch.tensor([0.3])
    grey = [float((each * (1 - each)).mean()) for each in (shift_mask(mask, lam), adjust_mask(mask, lam))]
    assert grey[0] < grey[1]


def test_gradient_of_a_balanced_mask_keeps_the_mean():
    logits = torch.randn(2, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    lam = torch.tensor([0.3, 0.6], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(balance(logits, lam).mean(), logits)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-6, rtol=0)
    assert torch.autograd.gradcheck(lambda values: balance(values, lam), logits, atol=1e-4)


def test_value_the_rule_chooses_and_the_margin_spares():
    mask, lam = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(2)), torch.tensor([0.2])
    assert torch.equal(Adjusting().adjust(mask, lam), adjust_mask(mask, lam))
    assert torch.equal(Adjusting(rule="shift").adjust(mask, lam), shift_mask(mask, lam))
    assert torch.equal(Adjusting(rule="shift", margin=0.9).adjust(mask, lam), mask)


def test_value_a_mask_of_mean_lam_is_sharpened_like_any_other():
    exact, near = as_mask([0.75, 0.25]), as_mask([0.75, 0.2500001])
    lam = torch.tensor([0.5])
    sharp = Adjusting(rule="shift", temperature=0.5).adjust(exact, lam)
    torch.testing.assert_close(sharp, Adjusting(rule="shift", temperature=0.5).adjust(near, lam))
    assert sharp.max() > 0.85
    kept = Adjusting(rule="shift", temperature=0.5, margin=0.1).adjust(exact, lam)
    assert torch.equal(kept, exact)
