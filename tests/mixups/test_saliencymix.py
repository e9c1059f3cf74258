"""SaliencyMix: CutMix's box around the partner's most salient pixel."""

import math

import pytest
import torch
from torch import Tensor

from samix.core.images import to_bytes
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.mixups import Hints
from samix.mixups.saliency import fine_grained_saliency
from samix.mixups.saliencymix import SaliencyMix, peak_mask


def pictures(batch: int, size: tuple[int, int] = (12, 20), dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(batch, 3, *size, generator=torch.Generator().manual_seed(5)).to(dtype)


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def mix(policy: SaliencyMix, pixels: Tensor, pairing: Pairing) -> Mixed:
    """Images normalised in some way, and the pixels that they were."""
    return policy((pixels - 0.4) / 0.2, pairing, Hints(pixels=pixels))


def first_peak(rows: list[list[int]]) -> tuple[int, int]:
    """The maximum that a reader meets first, line by line."""
    best, where = -1, (0, 0)
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            if value > best:
                best, where = value, (y, x)
    return where


def loop_mask(height: int, width: int, lam: float, centre: tuple[int, int]) -> Tensor:
    """The mask of one box, pixel by pixel."""
    half_h = math.floor(height * math.sqrt(1 - lam)) // 2
    half_w = math.floor(width * math.sqrt(1 - lam)) // 2
    mask = torch.ones(1, height, width)
    for h in range(max(centre[0] - half_h, 0), min(centre[0] + half_h, height)):
        for w in range(max(centre[1] - half_w, 0), min(centre[1] + half_w, width)):
            mask[0, h, w] = 0
    return mask


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (21, 9)])
def test_value_against_a_loop(size, per_sample):
    pixels, index = pictures(6, size), torch.tensor([3, 0, 1, 5, 2, 4])
    lam = torch.tensor([0.0, 0.03, 0.25, 0.5, 0.77, 1.0]) if per_sample else torch.tensor([0.4])
    mixed = mix(SaliencyMix(), pixels, Pairing(lam, index))
    maps = fine_grained_saliency((pixels * 255).round().byte()).tolist()
    x = (pixels - 0.4) / 0.2
    for i, weight in enumerate(lam.expand(6).double().tolist()):
        mask = loop_mask(*size, weight, first_peak(maps[index[i]]))
        assert torch.equal(mixed.mask[i], mask)
        assert torch.equal(mixed.x[i], torch.where(mask.bool(), x[i], x[index[i]]))
        assert float(mixed.pairing.lam[i]) == pytest.approx(float(mask.mean()))


def test_value_the_first_of_equal_peaks_is_the_centre():
    saliency = torch.zeros(3, 6, 9)
    saliency[0, 2, 7] = saliency[0, 3, 1] = saliency[0, 5, 8] = 4
    saliency[1, 4, 4:] = 2
    masks = peak_mask(saliency, torch.tensor([0.75]))
    for mask, centre in zip(masks, [(2, 7), (4, 4), (0, 0)], strict=True):
        assert torch.equal(mask, loop_mask(6, 9, 0.75, centre))


def test_value_a_spot_of_the_partner_is_pasted_where_it_stands():
    """The spot is in the first image's picture in one pair, in the partner's in the other."""
    pixels = torch.full((2, 3, 16, 16), 0.5)
    pixels[1, :, 4, 11] = 1
    mixed = mix(SaliencyMix(), pixels, Pairing(torch.tensor([0.8]), torch.tensor([1, 0])))
    hole = mixed.mask[0, 0] == 0
    assert hole.any() and hole[4, 11]
    assert mixed.x[0, 0, 4, 11] == pytest.approx((1 - 0.4) / 0.2)
    assert torch.equal(mixed.mask[1], loop_mask(16, 16, 0.8, (0, 0)))  # a flat partner: its first pixel


@pytest.mark.parametrize("batch", [1, 5])
def test_value_one_box_belongs_to_the_first_partner(batch):
    pixels = pictures(batch, (16, 24))
    index = ring(batch)
    own = mix(SaliencyMix(), pixels, Pairing(torch.tensor([0.6]), index))
    shared = mix(SaliencyMix(one_box=True), pixels, Pairing(torch.tensor([0.6]), index))
    assert len(own.mask) == batch and shared.mask.shape == (1, 1, 16, 24)
    assert torch.equal(shared.mask[0], own.mask[0])
    assert batch == 1 or not torch.equal(shared.mask.expand_as(own.mask), own.mask)


def test_value_one_box_with_a_lam_per_pair_shares_the_centre():
    pixels, lam = pictures(4, (16, 24)), torch.tensor([0.2, 0.5, 0.8, 1.0])
    masks = mix(SaliencyMix(one_box=True), pixels, Pairing(lam, ring(4))).mask
    centre = first_peak(fine_grained_saliency((pixels[3:] * 255).round().byte())[0].tolist())
    for mask, weight in zip(masks, lam.double().tolist(), strict=True):
        assert torch.equal(mask, loop_mask(16, 24, weight, centre))


def test_value_pixels_are_rounded_to_bytes():
    steps = torch.arange(256).view(1, 1, 16, 16).expand(1, 3, 16, 16)
    assert torch.equal(to_bytes(steps / 255), steps.byte())
    nearly = torch.tensor([-0.1, 0.4 / 255, 0.6 / 255, 254.4 / 255, 1.1])
    assert to_bytes(nearly.expand(1, 3, 1, 5))[0, 0, 0].tolist() == [0, 0, 1, 254, 255]


def test_value_a_side_below_two_pixels_keeps_the_image():
    mixed = mix(SaliencyMix(), pictures(4, (8, 8)), Pairing(torch.tensor([0.97]), ring(4)))
    assert (mixed.mask == 1).all() and (mixed.pairing.lam == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_and_dtype_follow_the_images(dtype):
    for batch in (1, 3):
        x = pictures(batch, (8, 14), dtype)
        mixed = SaliencyMix()(x, Pairing(torch.tensor([0.5]), ring(batch)), Hints(pixels=x))
        assert mixed.mask.shape == (batch, 1, 8, 14) and mixed.mask.dtype == mixed.x.dtype == dtype
        assert mixed.pairing.lam.shape == (batch,) and mixed.pairing.lam.dtype == torch.float32


@pytest.mark.parametrize("one_box", [False, True])
def test_invariant_lam_one_keeps_the_first_image(one_box):
    x = pictures(4)
    for lam in (torch.ones(1), torch.tensor([1.0, 0.3, 1.0, 0.3])):
        mixed = SaliencyMix(one_box=one_box)(x, Pairing(lam, ring(4)), Hints(pixels=x))
        for i in (0, 2):
            assert torch.equal(mixed.x[i], x[i])
            assert float(mixed.pairing.lam.expand(4)[i]) == 1


def test_invariant_no_random_number_is_drawn():
    x, generator = pictures(3), torch.Generator().manual_seed(1)
    before = torch.get_rng_state(), generator.get_state()
    SaliencyMix()(x, Pairing(torch.tensor([0.5]), ring(3)), Hints(pixels=x), generator)
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], generator.get_state())


def test_gradient_passes_the_blend_and_not_the_saliency():
    x = pictures(3).requires_grad_()
    mixed = SaliencyMix()(x, Pairing(torch.tensor([0.5]), ring(3)), Hints(pixels=x))
    assert not mixed.mask.requires_grad
    (grad,) = torch.autograd.grad(mixed.x.sum(), x)
    back = ring(3).argsort()  # image j is the partner of image back[j]
    torch.testing.assert_close(grad, (mixed.mask + 1 - mixed.mask[back]).expand_as(x))


def test_error_pixels_are_needed():
    x = pictures(2)
    with pytest.raises(ValueError, match=r"SaliencyMix needs pixels. Pass hints=Hints\(pixels=...\)"):
        SaliencyMix()(x, Pairing(torch.tensor([0.5]), ring(2)))


@pytest.mark.parametrize(("settings", "message"), [({"alpha": 0.0}, "alpha"), ({"prob": 1.5}, "prob")])
def test_error_bad_settings(settings, message):
    with pytest.raises(ValueError, match=f"mixup.{message} must"):
        SaliencyMix(**settings)


@pytest.mark.parametrize("lam", [0.3, 0.7])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_golden_box(golden, seed, lam):
    """From the official map (whose values are noise, see the module) follow their box, picture and weight."""
    record = golden("g_saliencymix_32")
    run = f"seed{seed}/lam{lam}"
    keep = peak_mask(record[f"{run}/saliency_map"][None], torch.tensor([lam]))
    assert torch.equal(keep.expand(4, 1, 32, 32), 1 - record[f"{run}/mask"])
    x, index = record["img"], record[f"{run}/index"]
    torch.testing.assert_close(torch.where(keep.bool(), x, x[index]), record[f"{run}/out"])
    assert float(keep.mean()) == pytest.approx(float(record[f"{run}/lam"]))
