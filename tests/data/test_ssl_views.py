"""Views for self-supervised training against torchvision, picture by picture with the same parameters."""

from dataclasses import fields, replace

import samix  # noqa: F401  (prepares torchvision)

# isort: split
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torchvision import transforms
from torchvision.transforms.v2 import functional as tv

from samix.data import ssl_views
from samix.data.ssl_views import (
    AUGMENTS,
    Augment,
    Boxes,
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    blur,
    draw_boxes,
    gaussian_blur,
    jitter,
    random_resized_crop,
    resized_crop,
    solarize,
    to_grey,
    two_views,
)
from samix.pixels import to_bytes
from samix.random import seeded

STILL = Augment(min_scale=1.0, jitter_prob=0.0, grey_prob=0.0, blur_prob=0.0, flip_prob=0.0)
"""Shows a square picture as it is."""
THEIRS = (tv.adjust_brightness, tv.adjust_contrast, tv.adjust_saturation, tv.adjust_hue)
OURS = (adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue)


def random_pictures(count: int, height: int, width: int) -> Tensor:
    return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8)


def shades_apart(ours: Tensor, theirs: Tensor) -> int:
    return int((ours.int() - theirs.int()).abs().max())


# Crops.


@pytest.mark.parametrize(
    ("height", "width", "size"), [(32, 32, 32), (40, 50, 16), (9, 13, 24), (64, 21, 20), (30, 30, 7)]
)
def test_value_resized_crop_is_torchvisions(height, width, size):
    pictures = random_pictures(12, height, width)
    boxes = draw_boxes(torch.full((12,), height), torch.full((12,), width), 0.08)
    flipped = torch.arange(12) % 2 == 1
    ours = resized_crop(pictures, boxes, flipped, size)
    for index, picture in enumerate(pictures):
        box = [int(edge[index]) for edge in boxes]
        crop = tv.resized_crop(picture / 255, *box, size=[size, size], antialias=True)
        crop_bytes = tv.resized_crop(picture, *box, size=[size, size], antialias=True)
        if flipped[index]:
            crop, crop_bytes = crop.flip(2), crop_bytes.flip(2)
        assert_close(ours[index], crop, atol=2e-5, rtol=0)
        assert shades_apart(to_bytes(ours)[index], crop_bytes) <= 1


def test_value_a_crop_does_not_see_what_surrounds_it():
    picture = torch.zeros(1, 3, 16, 16, dtype=torch.uint8)
    picture[:, :, 4:10, 5:12] = 255
    box = Boxes(*(torch.tensor([edge]) for edge in (4, 5, 6, 7)))
    for size in (3, 7, 32):
        assert_close(resized_crop(picture, box, torch.tensor([True]), size), torch.ones(1, 3, size, size))


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([0.08, 0.2, 0.9, 1.0]), st.integers(0, 10**6))
def test_invariant_boxes_lie_inside(height, width, min_scale, seed):
    torch.manual_seed(seed)
    boxes = draw_boxes(torch.full((50,), height), torch.full((50,), width), min_scale)
    assert (boxes.top >= 0).all() and (boxes.top + boxes.height <= height).all() and (boxes.height > 0).all()
    assert (boxes.left >= 0).all() and (boxes.left + boxes.width <= width).all() and (boxes.width > 0).all()


def largest_gap(ours: Tensor, theirs: Tensor) -> float:
    """The Kolmogorov-Smirnov distance of two samples."""
    at = torch.cat([ours, theirs]).sort().values
    shares = [torch.searchsorted(s.sort().values, at, right=True) / len(s) for s in (ours, theirs)]
    return float((shares[0] - shares[1]).abs().max())


@pytest.mark.parametrize(
    ("height", "width", "min_scale"), [(32, 32, 0.2), (96, 96, 0.08), (40, 90, 0.2), (90, 30, 0.5)]
)
def test_value_boxes_are_distributed_as_torchvisions(height, width, min_scale):
    count = 2500
    picture = torch.empty(3, height, width)
    theirs = Boxes(
        *torch.tensor(
            [
                transforms.RandomResizedCrop.get_params(picture, [min_scale, 1.0], [3 / 4, 4 / 3])
                for _ in range(count)
            ]
        ).T
    )
    ours = draw_boxes(torch.full((count,), height), torch.full((count,), width), min_scale)
    limit = 1.95 * (2 / count) ** 0.5  # two samples of one distribution are further apart once in 1000
    for mine, other in zip(ours, theirs, strict=True):
        assert largest_gap(mine.float(), other.float()) < limit
    assert largest_gap((ours.height * ours.width).float(), (theirs.height * theirs.width).float()) < limit
    assert largest_gap(ours.width / ours.height, theirs.width / theirs.height) < limit


@pytest.mark.parametrize(("height", "width"), [(20, 90), (90, 20), (30, 30), (25, 100), (31, 11)])
def test_value_what_never_fits_is_torchvisions_central_box(height, width):
    ours = draw_boxes(torch.tensor([height]), torch.tensor([width]), 1.0)
    theirs = transforms.RandomResizedCrop.get_params(
        torch.empty(3, height, width), [1.0, 1.0], [3 / 4, 4 / 3]
    )
    assert tuple(int(edge) for edge in ours) == tuple(theirs)


def test_value_crops_of_a_list_are_those_of_a_tensor():
    pictures = random_pictures(6, 40, 30)
    with seeded(3):
        batch = random_resized_crop(pictures, 16, 0.2, 0.5)
    with seeded(3):
        listed = random_resized_crop(list(pictures), 16, 0.2, 0.5)
    assert shades_apart(to_bytes(batch), to_bytes(listed)) <= 1


# Colours and blur.


@pytest.mark.parametrize("which", range(4), ids=["brightness", "contrast", "saturation", "hue"])
def test_value_adjustments_are_torchvisions(which):
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

    monkeypatch.setattr(ssl_views, "ADJUSTMENTS", tuple(recorder(which) for which in range(4)))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_value_jitter_is_torchvisions_one_after_the_other(monkeypatch, seed):
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
        assert largest_gap(factors, torch.linspace(low, high, 6000)) < 0.03


def test_value_jitter_of_no_strength_keeps_pictures():
    x = torch.rand(3, 3, 8, 8)
    assert torch.equal(jitter(x, (0.0, 0.0, 0.0, 0.0), 1.0), x)


@pytest.mark.parametrize(("height", "width", "taps"), [(32, 32, 3), (96, 96, 9), (224, 40, 5), (9, 9, 3)])
def test_value_blur_is_torchvisions(height, width, taps):
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


def test_value_grey_and_solarize_are_torchvisions():
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


# Whole views.


def test_value_flip_probability():
    pictures = random_pictures(400, 6, 6)
    seen = two_views(pictures, 6, (replace(STILL, flip_prob=0.3), replace(STILL, flip_prob=1.0)))
    first, second = seen.chunk(2)
    assert torch.equal(second, pictures.flip(3))
    flipped = (first == pictures.flip(3)).flatten(1).all(dim=1)
    assert ((first == pictures).flatten(1).all(dim=1) | flipped).all()
    assert float(flipped.float().mean()) == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("part", [1, 3 * 64, 10**6])
@pytest.mark.parametrize("listed", [False, True])
def test_value_first_views_come_first_whatever_the_parts(monkeypatch, part, listed):
    monkeypatch.setattr(ssl_views, "PART", part)
    pictures = random_pictures(7, 8, 8)
    pair = (STILL, replace(STILL, flip_prob=1.0, solarize_prob=1.0))
    seen = two_views(list(pictures) if listed else pictures, 8, pair)
    mirrored = torch.minimum(pictures, 255 - pictures).flip(3)
    assert torch.equal(seen, torch.cat([pictures, mirrored]))


def test_value_grey_first_leaves_no_colour():
    always = Augment(grey_prob=1.0, jitter_prob=1.0, blur_prob=0.0)
    pictures = random_pictures(4, 16, 16)
    with seeded(1):
        after = ssl_views.view(pictures, 16, always)
    with seeded(1):
        before = ssl_views.view(pictures, 16, replace(always, grey_first=True))
    for seen in (after, before):
        assert float((seen[:, 0] - seen[:, 2]).abs().max()) < 1e-3
    assert float((after - before).abs().max()) > 0.01


@pytest.mark.parametrize("name", AUGMENTS)
def test_value_every_pair_runs_on_any_pictures(name):
    pictures = [random_pictures(1, *side)[0] for side in ((17, 40), (9, 9), (64, 33), (12, 90))]
    batch = random_pictures(5, 19, 23)
    for given_pictures, size in ((pictures, 13), (batch, 15), (batch[:1], 32), (pictures[:1], 8)):
        seen = two_views(given_pictures, size, AUGMENTS[name])
        assert seen.shape == (2 * len(given_pictures), 3, size, size) and seen.dtype == torch.uint8


def test_value_each_picture_and_view_on_its_own():
    pictures = random_pictures(1, 32, 32).expand(8, -1, -1, -1)
    seen = two_views(pictures, 32, AUGMENTS["moco-v2"])
    assert len({tuple(s.flatten().tolist()) for s in seen}) == 16


@pytest.mark.parametrize("listed", [False, True])
def test_invariant_seed_decides_and_input_stays(listed):
    pictures = random_pictures(6, 20, 20)
    before = pictures.clone()
    shown = list(pictures) if listed else pictures

    def draw(seed: int) -> Tensor:
        with seeded(seed):
            return two_views(shown, 16, AUGMENTS["byol"])

    assert torch.equal(draw(5), draw(5))
    assert not torch.equal(draw(5), draw(6))
    assert torch.equal(pictures, before)


def test_value_brightness_of_views():
    # A flat grey picture shows brightness alone: times U(.6, 1.4), with probability .8.
    pictures = torch.full((300, 3, 8, 8), 100, dtype=torch.uint8)
    seen = two_views(pictures, 8, AUGMENTS["small"]).float()
    assert float(seen.mean()) == pytest.approx(100, abs=3)
    assert float(seen.mean(dim=(1, 2, 3)).std()) == pytest.approx(100 * 0.8 / 12**0.5 * 0.8**0.5, rel=0.15)


# name: smallest crop, jitter, its probability, blur of either view, solarise of either view.
TABLE = {
    "moco-v1": (0.2, (0.4, 0.4, 0.4, 0.4), 1.0, (0.0, 0.0), (0.0, 0.0)),
    "moco-v2": (0.2, (0.4, 0.4, 0.4, 0.1), 0.8, (0.5, 0.5), (0.0, 0.0)),
    "moco-v3": (0.2, (0.4, 0.4, 0.2, 0.1), 0.8, (1.0, 0.1), (0.0, 0.2)),
    "simclr": (0.08, (0.8, 0.8, 0.8, 0.2), 0.8, (0.5, 0.5), (0.0, 0.0)),
    "byol": (0.08, (0.4, 0.4, 0.2, 0.1), 0.8, (1.0, 0.1), (0.0, 0.2)),
    "swav": (0.08, (0.8, 0.8, 0.8, 0.2), 0.8, (0.5, 0.5), (0.0, 0.0)),
    "simsiam": (0.2, (0.4, 0.4, 0.4, 0.1), 0.8, (0.5, 0.5), (0.0, 0.0)),
    "small": (0.2, (0.4, 0.4, 0.4, 0.1), 0.8, (0.0, 0.0), (0.0, 0.0)),
}


def test_value_pairs_are_those_of_the_methods():
    assert set(TABLE) == set(AUGMENTS)
    for name, (min_scale, strengths, jitter_prob, *each) in TABLE.items():
        for augment, blur_prob, solarize_prob in zip(AUGMENTS[name], *each, strict=True):
            assert augment.strengths == strengths
            assert augment == Augment(
                min_scale=min_scale,
                brightness=strengths[0],
                contrast=strengths[1],
                saturation=strengths[2],
                hue=strengths[3],
                jitter_prob=jitter_prob,
                grey_prob=0.2,
                grey_first=name == "moco-v1",
                blur_prob=blur_prob,
                blur_sigma=(0.1, 2.0),
                solarize_prob=solarize_prob,
                flip_prob=0.5,
            )


@pytest.mark.parametrize("name", [f.name for f in fields(Augment) if f.name.endswith("_prob")])
@pytest.mark.parametrize("value", [1.5, -0.1, float("nan")])
def test_error_probability(name, value):
    with pytest.raises(ValueError, match=rf"augment\.{name} must lie in \[0, 1\], got {value}\."):
        Augment(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("min_scale", 0.0, r"must lie in \(0, 1\]"),
        ("min_scale", 1.1, r"must lie in \(0, 1\]"),
        ("brightness", -0.1, "must not be negative"),
        ("contrast", float("nan"), "must not be negative"),
        ("saturation", -1.0, "must not be negative"),
        ("hue", 0.6, r"must lie in \[0, 0.5\]"),
        ("blur_sigma", (0.0, 1.0), "must be 0 < low <= high"),
        ("blur_sigma", (2.0, 1.0), "must be 0 < low <= high"),
    ],
)
def test_error_names_the_field(name, value, says):
    with pytest.raises(ValueError, match=rf"augment\.{name} {says}"):
        Augment(**{name: value})
