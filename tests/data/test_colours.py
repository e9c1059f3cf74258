"""Colours and blur against torchvision, picture by picture with the same parameters."""

import samix  # noqa: F401  (prepares torchvision)

# isort: split
import pytest
import torch
from scipy.stats import ks_2samp
from torch import Tensor
from torch.testing import assert_close
from torchvision.transforms.v2 import functional as tv

from samix.core.images import to_bytes
from samix.data import colours
from samix.data.colours import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    blur,
    gaussian_blur,
    jitter,
    solarize,
    to_grey,
)

THEIRS = (tv.adjust_brightness, tv.adjust_contrast, tv.adjust_saturation, tv.adjust_hue)
OURS = (adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue)


def shades_apart(ours: Tensor, theirs: Tensor) -> int:
    return int((ours.int() - theirs.int()).abs().max())


@pytest.mark.parametrize("which", range(4), ids=["brightness", "contrast", "saturation", "hue"])
def test_value_adjustments_are_torchvisions(which, random_pictures):
    pictures = random_pictures(9, 11, 14)
    pictures[0] = 77  # grey
    pictures[1, 2] = pictures[1, 0]  # ties
    pictures[2, 1] = pictures[2, 0]
    pictures[3] = 0
    pictures[4] = 255
    factors = torch.linspace(-0.5, 0.5, 9) if which == 3 else torch.linspace(0, 1.8, 9)
    ours = OURS[which](pictures / 255, factors)
    for index, (picture, factor) in enumerate(zip(pictures, factors.tolist(), strict=True)):
        assert_close(ours[index], THEIRS[which](picture / 255, factor), atol=5e-5, rtol=0)
        assert (
            shades_apart(to_bytes(ours)[index], THEIRS[which](picture, factor)) <= 2
        )  # it cuts fractions off


def record_jitter(monkeypatch) -> list[tuple[int, Tensor]]:
    """Which adjustment was made with which factors, in the order in which they are made."""
    made: list[tuple[int, Tensor]] = []

    def recorder(which):
        def adjust(x, factor):
            made.append((which, factor))
            return OURS[which](x, factor)

        return adjust

    monkeypatch.setattr(colours, "ADJUSTMENTS", tuple(recorder(which) for which in range(4)))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_value_jitter_is_torchvisions_one_after_the_other(monkeypatch, seed, random_pictures):
    torch.manual_seed(seed)
    made = record_jitter(monkeypatch)
    pictures = random_pictures(7, 12, 10)
    ours = jitter(pictures / 255, (0.4, 0.8, 0.4, 0.2), 1.0)
    assert sorted(which for which, _ in made) == [0, 1, 2, 3]
    for index, picture in enumerate(pictures):
        theirs = picture / 255
        for which, factor in made:
            theirs = THEIRS[which](theirs, float(factor[index]))
        assert_close(ours[index], theirs, atol=1e-4, rtol=0)


def test_value_jitter_draws_factors_per_picture_and_every_order(monkeypatch):
    made = record_jitter(monkeypatch)
    for _ in range(300):
        jitter(torch.rand(20, 3, 1, 1), (0.4, 1.5, 0.1, 0.2), 1.0)
    orders = {tuple(which for which, _ in made[i : i + 4]) for i in range(0, len(made), 4)}
    assert len(orders) == 24
    for which, (low, high) in enumerate([(0.6, 1.4), (0.0, 2.5), (0.9, 1.1), (-0.2, 0.2)]):
        factors = torch.cat([factor for index, factor in made if index == which])
        assert len(factors.unique()) > 5900 and factors.min() >= low - 1e-6 and factors.max() <= high + 1e-6
        assert ks_2samp(factors, torch.linspace(low, high, 6000)).statistic < 0.03


def test_value_jitter_of_no_strength_keeps_pictures():
    x = torch.rand(3, 3, 8, 8)
    assert torch.equal(jitter(x, (0.0, 0.0, 0.0, 0.0), 1.0), x)


@pytest.mark.parametrize(("height", "width", "taps"), [(32, 32, 3), (96, 96, 9), (224, 40, 5), (9, 9, 3)])
def test_value_blur_is_torchvisions(height, width, taps, random_pictures):
    pictures = random_pictures(4, height, width)
    sigma = torch.tensor([0.1, 0.5, 1.3, 2.0])
    ours = blur(pictures / 255, sigma)
    for index, picture in enumerate(pictures):
        theirs = tv.gaussian_blur(picture / 255, [taps, taps], [float(sigma[index])] * 2)
        assert_close(ours[index], theirs, atol=1e-5, rtol=0)


def test_value_blur_of_photographs_has_23_taps():
    x = torch.zeros(1, 3, 224, 224)
    x[:, :, 100, 100] = 1
    assert int((blur(x, torch.tensor([2.0]))[0, 0, 100] > 0).sum()) == 23


def test_value_blur_draws_a_sigma_per_picture():
    x = torch.rand(1, 3, 16, 16).expand(8, -1, -1, -1)
    assert len({tuple(seen.flatten().tolist()) for seen in gaussian_blur(x, (0.5, 2.0), 1.0)}) == 8


def test_value_grey_and_solarize_are_torchvisions(random_pictures):
    pictures = random_pictures(3, 16, 16)
    grey = torch.stack([tv.rgb_to_grayscale(picture / 255, 3) for picture in pictures])
    assert_close(to_grey(pictures / 255, 1.0), grey)
    solarized = torch.stack([tv.solarize(picture, 128) for picture in pictures])
    assert torch.equal(to_bytes(solarize(pictures / 255, 1.0)), solarized)


CHANGES = {
    "jitter": lambda x, prob: jitter(x, (0.4, 0.4, 0.4, 0.1), prob),
    "grey": to_grey,
    "blur": lambda x, prob: gaussian_blur(x, (0.5, 2.0), prob),
    "solarize": solarize,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_value_probability(change):
    x = torch.rand(400, 3, 4, 4)
    before = x.clone()
    assert torch.equal(change(x, 0.0), x)
    for prob in (0.2, 0.8, 1.0):
        share = float((change(x, prob) != x).flatten(1).any(dim=1).float().mean())
        assert share == pytest.approx(prob, abs=0.06 if prob < 1 else 0)
    assert torch.equal(x, before)
