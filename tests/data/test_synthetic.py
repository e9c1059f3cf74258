"""The embedded set: seeded, balanced, and only the shape tells the class."""

import pytest
import torch
from torch.testing import assert_close

from samix.data.synthetic import DRAWINGS, SHAPES, Dice, Plane, draw_object, draw_pictures, shape_areas

PICTURES = draw_pictures(600, seed=3)


def same(one, other):
    return all(torch.equal(left, right) for left, right in zip(one, other, strict=True))


@pytest.mark.parametrize("size", [16, 32, 64])
def test_shape_and_types(size):
    pictures = draw_pictures(13, size=size)
    assert pictures.images.shape == (13, 3, size, size) and pictures.images.dtype == torch.uint8
    assert pictures.labels.shape == (13,) and pictures.labels.dtype == torch.int64
    assert pictures.masks.shape == (13, 1, size, size) and pictures.masks.dtype == torch.bool


def test_invariant_same_seed_same_pictures():
    torch.manual_seed(1)
    first = draw_pictures(50, seed=7)
    torch.manual_seed(2)
    assert same(first, draw_pictures(50, seed=7))


def test_invariant_global_generator_is_left_alone():
    state = torch.get_rng_state()
    draw_pictures(5)
    assert torch.equal(state, torch.get_rng_state())


def test_value_seeds_differ():
    one, other = draw_pictures(60, seed=0), draw_pictures(60, seed=1)
    assert not torch.equal(one.labels, other.labels)
    assert (one.images != other.images).flatten(1).any(dim=1).all()


def test_invariant_no_two_pictures_are_alike():
    assert len(PICTURES.images.flatten(1).unique(dim=0)) == len(PICTURES.images)


@pytest.mark.parametrize("count", [1, 95, 96, 97, 250])
def test_invariant_longer_draw_starts_with_the_shorter(count):
    shorter = draw_pictures(count, seed=3)
    assert same(shorter, (part[:count] for part in PICTURES))


@pytest.mark.parametrize("count, classes", [(1, 12), (7, 12), (100, 12), (250, 12), (95, 3), (101, 10)])
def test_invariant_classes_are_balanced_within_one(count, classes):
    shown = draw_pictures(count, classes=classes).labels.bincount(minlength=classes)
    assert len(shown) == classes
    assert shown.max() - shown.min() <= 1


def test_invariant_objects_cover_10_to_35_percent():
    area = PICTURES.masks.float().mean(dim=(1, 2, 3))
    assert area.min() >= 0.10 and area.max() <= 0.35
    assert area.max() - area.min() > 0.12


def test_invariant_size_tells_no_class():
    area = PICTURES.masks.float().mean(dim=(1, 2, 3))
    means = torch.stack([area[PICTURES.labels == label].mean() for label in range(len(SHAPES))])
    assert (means / means.mean() - 1).abs().max() < 0.2


def test_invariant_objects_lie_mostly_within_the_picture():
    """The same objects on a field of four times the area: how much of each the picture itself shows."""
    labels = torch.arange(len(SHAPES)).repeat(8)
    axis = (torch.arange(96) + 0.5) / 48 - 0.5
    field = Plane(axis.expand(len(labels), 96, -1), axis[:, None].expand(len(labels), -1, 96))
    dice = Dice(len(labels), seed=0)
    _, cover = draw_object(dice, field, labels, dice(0.0, 1.0))
    whole = cover > 0.5
    shown = whole[:, 24:72, 24:72].sum(dim=(1, 2)) / whole.sum(dim=(1, 2))
    assert shown.min() > 0.8
    assert shown.mean() > 0.98


def test_value_places_vary():
    axis = torch.linspace(0, 1, 32)
    weight = PICTURES.masks[:, 0].float()
    columns = (weight.sum(dim=1) * axis).sum(dim=1) / weight.sum(dim=(1, 2))
    assert columns.min() < 0.35 and columns.max() > 0.65


def test_value_mask_lies_on_the_object():
    """The colour changes more across the mask's edge than between neighbours on the same side."""
    images, masks = PICTURES.images.float(), PICTURES.masks
    step = (images[..., 2:] - images[..., :-2]).abs().mean(dim=1, keepdim=True)
    across = masks[..., 2:] != masks[..., :-2]
    assert step[across].mean() > 1.5 * step[~across].mean()


def test_invariant_the_scene_does_not_depend_on_the_resolution():
    small, large = draw_pictures(48, size=32, seed=5), draw_pictures(48, size=64, seed=5)
    assert torch.equal(small.labels, large.labels)
    shrunk = torch.nn.functional.avg_pool2d(large.masks.float(), 2) > 0.5
    assert (shrunk != small.masks).float().mean() < 0.03
    pooled = torch.nn.functional.avg_pool2d(large.images.float(), 2)
    assert (pooled - small.images.float()).abs().mean() < 20


@pytest.mark.parametrize("name", SHAPES)
def test_value_drawn_area_matches_points_thrown_at_random(name):
    generator = torch.Generator().manual_seed(0)
    u, v = 2.5 * torch.rand(2, 40_000, generator=generator) - 1.25
    hit = (DRAWINGS[name](Plane(u, v)) > 0).float().mean() * 2.5**2
    assert_close(hit, shape_areas()[SHAPES.index(name)], atol=0.06, rtol=0)


@pytest.mark.parametrize("name", SHAPES)
def test_invariant_shapes_lie_in_a_disc_and_are_no_disc(name):
    turn = torch.linspace(0, 6.28, 100)
    assert (DRAWINGS[name](Plane(1.15 * turn.cos(), 1.15 * turn.sin())) < 0).all()
    assert DRAWINGS[name](Plane(0.9 * turn.cos(), 0.9 * turn.sin())).max() > 0


@pytest.mark.parametrize(
    "wrong", [{"count": 0}, {"count": -3}, {"classes": 1}, {"classes": len(SHAPES) + 1}, {"size": 7}]
)
def test_error_arguments(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=f"{name} must .* got {value}"):
        draw_pictures(**({"count": 5} | wrong))
