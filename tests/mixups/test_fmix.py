"""FMix: both spectra, paper's and code's, against a slow inverse transform, and the number of kept pixels."""

import cmath
import math

import pytest
import torch

from samix.core.pairing import Pairing
from samix.mixups.fmix import SPECTRA, FMix, code_spectrum, fmix_mask, keep_largest, paper_spectrum

SIZES = [(8, 8), (8, 12), (13, 8), (9, 15)]


def loop_scale(size: tuple[int, int], row: int, column: int, decay: float) -> float:
    """The scale s(r, k) of FMix for signed frequencies."""
    height, width = size
    signed = row if row <= height // 2 else row - height
    frequency = math.hypot(signed / height, column / width)
    return max(frequency, 1 / max(size)) ** -decay


def loop_inverse(half: list[list[complex]], size: tuple[int, int]) -> torch.Tensor:
    """The inverse real transform pixel by pixel: a complex one over the rows, a real one over the columns."""
    height, width = size
    grey = torch.zeros(size, dtype=torch.float64)
    for h in range(height):
        waves = []
        for k in range(width // 2 + 1):
            terms = (half[r][k] * cmath.exp(2j * cmath.pi * r * h / height) for r in range(height))
            waves.append(sum(terms) / height)
        for w in range(width):
            value = waves[0].real
            for k in range(1, width // 2 + 1):
                twice = 1 if 2 * k == width else 2  # the mirrored frequency, where there is one
                value += twice * (waves[k] * cmath.exp(2j * cmath.pi * k * w / width)).real
            grey[h, w] = value / width
    return grey


def direction(image: torch.Tensor) -> torch.Tensor:
    """The image up to a positive factor, which does not change the order of its pixels."""
    return image.double() / image.double().norm()


@pytest.mark.parametrize("size", SIZES)
def test_value_paper_grey_image_against_a_loop(size):
    spectrum = paper_spectrum(size, 2, 3.0, torch.Generator().manual_seed(5))
    noise = torch.randn(2, size[0], size[1] // 2 + 1, 2, generator=torch.Generator().manual_seed(5))
    for waves, draws in zip(spectrum, noise.tolist(), strict=True):
        half = [
            [
                complex(*draws[r][k]) * loop_scale(size, r, k, 3.0) * (2**0.5 if k in (0, size[1] / 2) else 1)
                for k in range(size[1] // 2 + 1)
            ]
            for r in range(size[0])
        ]
        expected = direction(loop_inverse(half, size))
        torch.testing.assert_close(direction(torch.fft.irfft2(waves, s=size)), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [*SIZES, (8, 30)])
def test_value_code_grey_image_against_a_loop(size):
    """Row k of the spectrum is frequency k of the width; (8, 30) has more of those than rows."""
    spectrum = code_spectrum(size, 2, 3.0, torch.Generator().manual_seed(5))
    noise = torch.randn(2, size[1] // 2 + 1, 2, 2, generator=torch.Generator().manual_seed(5))
    for waves, draws in zip(spectrum, noise.tolist(), strict=True):
        half = [[0j] * (size[1] // 2 + 1) for _ in range(size[0])]
        for k in range(min(size[1] // 2 + 1, size[0])):
            for column in (0, 1):
                a, b = draws[k][column]
                half[k][column] = complex(loop_scale(size, 0, k, 3.0) * a, loop_scale(size, 1, k, 3.0) * b)
        expected = direction(loop_inverse(half, size))
        torch.testing.assert_close(direction(torch.fft.irfft2(waves, s=size)), expected, atol=1e-5, rtol=0)


def test_value_only_the_code_spectrum_lacks_horizontal_frequencies():
    for name, empty in (("code", True), ("paper", False)):
        waves = SPECTRA[name]((32, 48), 4, 3.0, torch.Generator().manual_seed(1))
        grey = torch.fft.irfft2(waves, s=(32, 48)).double()
        high = torch.fft.rfft(grey, dim=2)[..., 2:].abs().square().sum()
        share = float(high / torch.fft.rfft(grey, dim=2)[..., 1:].abs().square().sum())
        assert (share < 1e-9) == empty


def runs_per_row(mask: torch.Tensor) -> int:
    """The most runs of ones that a row of [H, W] has, counted around the border."""
    starts = (mask == 1) & (mask.roll(1, dims=1) == 0)
    return int(starts.sum(dim=1).max())


@pytest.mark.parametrize("run", ["lamNone", "lam0.3", "lam0.7"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_golden_rows_are_one_wave(golden, seed, run):
    """The recorded masks have one run per row at most, as "code" has and "paper" has not."""
    record = golden("g_fmix_32")
    assert runs_per_row(record[f"seed{seed}/{run}/mask"][0, 0]) <= 1
    draw = torch.Generator().manual_seed(seed)
    lam = torch.full((20,), 0.5)
    assert max(runs_per_row(m[0]) for m in fmix_mask((32, 32), lam, spectrum="code", generator=draw)) == 1
    assert max(runs_per_row(m[0]) for m in fmix_mask((32, 32), lam, generator=draw)) > 1


def test_value_keep_largest_against_a_loop():
    grey = torch.rand(5, 6, 7)
    count = torch.tensor([0, 1, 17, 41, 42])
    for image, mask, m in zip(grey, keep_largest(grey, count), count.tolist(), strict=True):
        kept = sorted(image.flatten().tolist(), reverse=True)[:m]
        for h in range(6):
            for w in range(7):
                assert float(mask[0, h, w]) == (float(image[h, w]) in kept)


def test_value_keep_largest_counts_ties_once():
    assert keep_largest(torch.ones(2, 4, 4), torch.tensor([5, 16])).sum(dim=(1, 2, 3)).tolist() == [5, 16]


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (21, 9), (32, 32)])
def test_invariant_the_kept_pixels_are_lam_rounded(size, spectrum):
    lam = torch.tensor([0.0, 0.001, 0.13, 0.5, 0.77, 0.999, 1.0])
    masks = fmix_mask(size, lam, spectrum=spectrum, generator=torch.Generator().manual_seed(2))
    assert masks.shape == (7, 1, *size) and set(masks.unique().tolist()) == {0.0, 1.0}
    for mask, value in zip(masks, lam.tolist(), strict=True):
        assert abs(int(mask.sum()) - value * size[0] * size[1]) < 1
    assert (masks[0] == 0).all() and (masks[-1] == 1).all()


def test_value_a_coin_rounds_up_or_down():
    """lam H W = 19.2: 19 or 20 pixels, each half of the time."""
    counts = fmix_mask((8, 8), torch.full((2000,), 0.3), generator=torch.Generator().manual_seed(0))
    counts = counts.sum(dim=(1, 2, 3))
    assert set(counts.tolist()) == {19.0, 20.0}
    assert float((counts == 20).float().mean()) == pytest.approx(0.5, abs=0.05)


def test_value_only_the_code_makes_regions_taller_than_wide():
    """Steps down a column per step along a row: 1 where all directions are alike."""

    def ratio(spectrum: str) -> float:
        draw = torch.Generator().manual_seed(3)
        masks = fmix_mask((32, 32), torch.full((400,), 0.5), spectrum=spectrum, generator=draw)
        return float((masks.diff(dim=2) != 0).sum() / (masks.diff(dim=3) != 0).sum())

    assert ratio("paper") == pytest.approx(1.0, abs=0.05)
    assert ratio("code") == pytest.approx(0.68, abs=0.05)


def test_value_a_larger_decay_is_smoother():
    def edges(decay: float) -> int:
        masks = fmix_mask((32, 32), torch.full((50,), 0.5), decay, generator=torch.Generator().manual_seed(0))
        return int((masks.diff(dim=3) != 0).sum())

    assert edges(1.0) > 1.5 * edges(3.0) > 1.5 * edges(30.0) > 0


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_lam_one_keeps_its_image_beside_others(spectrum, dtype):
    x = torch.randn(3, 3, 8, 20).to(dtype)
    mixed = FMix(spectrum=spectrum)(x, Pairing(torch.tensor([1.0, 0.4, 1.0]), torch.tensor([1, 2, 0])))
    assert torch.equal(mixed.x[[0, 2]], x[[0, 2]]) and not torch.equal(mixed.x[1], x[1])
    assert mixed.mask.dtype == dtype and mixed.pairing.lam[[0, 2]].tolist() == [1.0, 1.0]
    assert abs(float(mixed.pairing.lam[1]) - 0.4) < 1 / 160


def test_shape_one_mask_per_lam_and_a_batch_of_one():
    x = torch.rand(4, 3, 16, 12)
    assert FMix()(x, Pairing(torch.tensor([0.5]), torch.arange(4).roll(1))).mask.shape == (1, 1, 16, 12)
    masks = FMix()(x, Pairing(torch.full((4,), 0.5), torch.arange(4).roll(1))).mask
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 4
    alone = FMix()(x[:1], Pairing(torch.tensor([0.5]), torch.tensor([0])))
    torch.testing.assert_close(alone.x, x[:1])


def test_invariant_the_generator_alone_decides():
    lam, before = torch.full((3,), 0.3), torch.get_rng_state()
    first, second, third = (
        fmix_mask((16, 16), lam, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, second) and not torch.equal(first, third)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("field", "value"), [("decay", -1.0), ("decay", math.nan), ("alpha", 0.0)])
def test_error_settings(field, value):
    with pytest.raises(ValueError, match=rf"mixup.{field} must be positive, got {value}"):
        FMix(**{field: value})


@pytest.mark.usefixtures("unchecked_shapes")
def test_error_unknown_spectrum():
    with pytest.raises(ValueError, match=r"unknown mixup.spectrum 'papr'. Did you mean 'paper'\?"):
        FMix(spectrum="papr")
