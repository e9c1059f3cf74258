"""Views for self-supervised training: how often, in which order and for which method pictures change."""

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from samix.core.seeds import seeded
from samix.core.small_crops import SmallCrops, unpack
from samix.data import ssl_views
from samix.data.ssl_views import AUGMENTS, Augment, one_view, two_views

UNCHANGED = Augment(min_scale=1.0, jitter_prob=0.0, grey_prob=0.0, blur_prob=0.0, flip_prob=0.0)
"""Shows a square picture as it is."""


def test_value_flip_probability(random_pictures):
    pictures = random_pictures(400, 6, 6)
    seen = two_views(pictures, 6, (replace(UNCHANGED, flip_prob=0.3), replace(UNCHANGED, flip_prob=1.0)))
    first, second = seen.chunk(2)
    assert torch.equal(second, pictures.flip(3))
    flipped = (first == pictures.flip(3)).flatten(1).all(dim=1)
    assert ((first == pictures).flatten(1).all(dim=1) | flipped).all()
    assert float(flipped.float().mean()) == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("part", [1, 3 * 64, 10**6])
@pytest.mark.parametrize("listed", [False, True])
def test_value_first_views_come_first_whatever_the_parts(monkeypatch, part, listed, random_pictures):
    monkeypatch.setattr(ssl_views, "PART", part)
    pictures = random_pictures(7, 8, 8)
    pair = (UNCHANGED, replace(UNCHANGED, flip_prob=1.0, solarize_prob=1.0))
    seen = two_views(list(pictures) if listed else pictures, 8, pair)
    mirrored = torch.minimum(pictures, 255 - pictures).flip(3)
    assert torch.equal(seen, torch.cat([pictures, mirrored]))


def test_value_grey_first_leaves_no_colour(random_pictures):
    always = Augment(grey_prob=1.0, jitter_prob=1.0, blur_prob=0.0)
    pictures = random_pictures(4, 16, 16)
    with seeded(1):
        after = ssl_views.random_view(pictures, 16, always)
    with seeded(1):
        before = ssl_views.random_view(pictures, 16, replace(always, grey_first=True))
    for seen in (after, before):
        assert float((seen[:, 0] - seen[:, 2]).abs().max()) < 1e-3
    assert float((after - before).abs().max()) > 0.01


@pytest.mark.parametrize("name", AUGMENTS)
def test_value_every_pair_runs_on_any_pictures(name, random_pictures):
    pictures = [random_pictures(1, *side)[0] for side in ((17, 40), (9, 9), (64, 33), (12, 90))]
    batch = random_pictures(5, 19, 23)
    for given_pictures, size in ((pictures, 13), (batch, 15), (batch[:1], 32), (pictures[:1], 8)):
        seen = two_views(given_pictures, size, AUGMENTS[name])
        assert seen.shape == (2 * len(given_pictures), 3, size, size) and seen.dtype == torch.uint8


def test_value_each_picture_and_view_on_its_own(random_pictures):
    pictures = random_pictures(1, 32, 32).expand(8, -1, -1, -1)
    seen = two_views(pictures, 32, AUGMENTS["moco-v2"])
    assert len({tuple(s.flatten().tolist()) for s in seen}) == 16


@pytest.mark.parametrize("listed", [False, True])
def test_invariant_seed_decides_and_input_stays(listed, random_pictures):
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
    "swav-multi": (0.14, (0.8, 0.8, 0.8, 0.2), 0.8, (0.5, 0.5), (0.0, 0.0)),
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
        ("max_scale", 0.1, r"must be at least augment.min_scale \(0.2\), got 0.1"),
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


def test_value_small_crops_come_back_out_of_their_canvases(random_pictures):
    """Six crops of 12 px behind two views of 24 px: four in a picture's first canvas, two in the second."""
    pictures, small = random_pictures(5, 40, 40), SmallCrops(count=6, size=12)
    with seeded(3):
        x = two_views(pictures, 24, AUGMENTS["swav-multi"], small)
    assert x.shape == (2 * 5 + 2 * 5, 3, 24, 24)
    with seeded(3):
        assert torch.equal(two_views(pictures, 24, AUGMENTS["swav-multi"]), x[:10])
        part = replace(AUGMENTS["swav-multi"][0], min_scale=0.05, max_scale=0.14)
        expected = [one_view(pictures, 12, part) for _ in range(6)]
    found = unpack(x[10:], small, 5)
    assert len(found) == 6
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_value_small_crops_show_a_small_part():
    """Along a ramp from left to right a crop of at most 14 % of the area shows at most 44 % of the range."""
    ramp = torch.arange(200, dtype=torch.uint8).expand(40, 3, 200, 200)
    plain = Augment(brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0, grey_prob=0.0, blur_prob=0.0)
    x = one_view(ramp, 16, replace(plain, min_scale=0.05, max_scale=0.14)).float()
    shown = x.amax(dim=(1, 2, 3)) - x.amin(dim=(1, 2, 3))
    assert float(shown.min()) > 0.05**0.5 * 200 * 0.7 and float(shown.max()) < (0.14 * 4 / 3) ** 0.5 * 200


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"count": -1}, r"crops\.count must not be negative, got -1"),
        ({"size": 4}, r"crops\.size must be at least 8, got 4"),
        ({"max_scale": 0.01}, r"crops\.max_scale must be at least crops\.min_scale \(0.05\), got 0.01"),
    ],
)
def test_error_small_crops(fields, says):
    with pytest.raises(ValueError, match=says):
        SmallCrops(**fields)
