"""RandAugment, jitter and erasing: against slow loops and timm, on the draw's own stream alone."""

import random

import numpy as np
import pytest
import torch
from timm.data.random_erasing import RandomErasing

from samix.core.seeds import seeded
from samix.data import IMAGENET_STATS, Data, ImageSet, TrainPlan, make_loader, train_view
from samix.data.augment import changes_of, draw_patches, erase, rand_augment, rand_augment_transform

ALL = Data(size=24, rand_augment=9, jitter=0.4, erasing=0.5)


def test_value_without_settings_nothing_changes(random_pictures):
    pictures = random_pictures(4, 24, 24)
    assert changes_of(Data(size=24)) == []
    assert torch.equal(train_view(Data(size=24, view="none"))(pictures), pictures)


def test_value_the_transform_is_timms_with_the_published_settings():
    transform = rand_augment_transform(6)
    assert transform.num_layers == 2 and transform.choice_weights is None
    for change in transform.ops:
        assert (change.prob, change.magnitude, change.magnitude_std) == (0.5, 6, 0.5)
        assert change.kwargs["fillcolor"] == (124, 116, 104)
    names = {change.name for change in transform.ops}
    assert len(names) == 15 and {"PosterizeIncreasing", "SolarizeIncreasing", "ColorIncreasing"} <= names


def test_value_every_picture_goes_through_the_transform_on_its_own(random_pictures):
    pictures = random_pictures(3, 10, 12)
    changed = rand_augment(pictures, lambda picture: picture.transpose(0))  # Pillow's mirror
    assert torch.equal(changed, pictures.flip(3))


def test_shape_of_all_changes_together(random_pictures):
    pictures = random_pictures(6, 24, 24)
    before = pictures.clone()
    with seeded(0):
        seen = train_view(ALL)(pictures)
    assert seen.shape == pictures.shape and seen.dtype == torch.uint8
    assert torch.equal(pictures, before) and not torch.equal(seen, pictures)


def test_invariant_views_follow_from_the_seed_and_leave_no_trace(random_pictures):
    view, pictures = train_view(ALL), random_pictures(8, 24, 24)
    found = []
    for seed, noise in ((1, 5), (1, 6), (2, 5)):
        random.seed(noise)
        np.random.seed(noise)  # noqa: NPY002
        torch.manual_seed(noise)
        with seeded(seed):
            found.append(view(pictures))
        drawn = random.random(), np.random.rand(), torch.rand(()).item()  # noqa: NPY002
        random.seed(noise)
        np.random.seed(noise)  # noqa: NPY002
        torch.manual_seed(noise)
        assert drawn == (random.random(), np.random.rand(), torch.rand(()).item())  # noqa: NPY002
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


@pytest.mark.slow
def test_invariant_batches_do_not_depend_on_the_workers(random_pictures):
    images = ImageSet(random_pictures(12, 24, 24), torch.arange(12), tuple("abcdefghijkl"))
    found = [
        torch.cat([b.pictures for b in make_loader(images, train_view(ALL), TrainPlan(12, 4, 2), workers)])
        for workers in (0, 2)
    ]
    assert torch.equal(*found)
    assert not torch.equal(found[0][:12].sort(0).values, found[0][12:].sort(0).values)  # epochs differ


def test_value_erasing_changes_one_rectangle_of_its_share(random_pictures):
    pictures = torch.zeros(400, 3, 20, 30, dtype=torch.uint8)
    with seeded(3):
        erased = erase(pictures, 0.25)
    touched = (erased != 0).any(dim=1)
    chosen = touched.flatten(1).any(dim=1)
    assert 0.18 < chosen.float().mean() < 0.32
    for place in touched[chosen]:
        rows, columns = place.any(dim=1).nonzero()[:, 0], place.any(dim=0).nonzero()[:, 0]
        height, width = rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1
        box = place[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert box.float().mean() > 0.8  # noise is black in few places
        assert 0.01 * 600 < height * width < 0.36 * 600 and height < 20 and width < 30


def test_value_the_noise_has_imagenets_statistics():
    with seeded(0):
        erased = erase(torch.zeros(300, 3, 32, 32, dtype=torch.uint8), 1.0)
    noise = erased[(erased != 0).all(dim=1)[:, None].expand_as(erased)].view(-1) / 255
    values = erased.movedim(1, -1)[(erased != 0).all(dim=1)] / 255
    assert len(noise) and torch.allclose(values.mean(0), torch.tensor(IMAGENET_STATS.mean), atol=0.02)
    assert torch.allclose(values.std(0), torch.tensor(IMAGENET_STATS.std), atol=0.02)


def test_value_patches_are_distributed_as_timms():
    """Mean and deviation of area and ratio over many draws of both."""
    height, width, count = 24, 32, 3000
    with seeded(1):
        boxes, found = draw_patches(count, height, width)
    ours = torch.stack([boxes.height[found], boxes.width[found]]).float()
    theirs = []
    with seeded(2):
        eraser = RandomErasing(probability=1.0, mode="const", device="cpu")
        for _ in range(count):
            place = eraser(torch.ones(1, height, width))[0] == 0
            theirs.append([place.any(1).sum(), place.any(0).sum()])
    theirs = torch.tensor(theirs).float().T
    for mine, other in zip((*ours, ours.prod(0)), (*theirs, theirs.prod(0)), strict=True):
        assert abs(mine.mean() - other.mean()) < 0.05 * other.mean()
        assert abs(mine.std() - other.std()) < 0.08 * other.std()


def test_invariant_patches_lie_inside():
    with seeded(4):
        boxes, found = draw_patches(2000, 9, 5)
    inside = (boxes.top + boxes.height <= 9) & (boxes.left + boxes.width <= 5)
    assert inside[found].all() and (boxes.top[found] >= 0).all() and (boxes.height[found] < 9).all()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"rand_augment": 11}, "data.rand_augment must be at most 10, got 11"),
        ({"rand_augment": -1}, "data.rand_augment must not be negative, got -1"),
        ({"erasing": 1.5}, r"data.erasing must lie in \[0, 1\], got 1.5"),
        ({"jitter": -0.1}, "data.jitter must not be negative"),
        ({"repeats": 0}, "data.repeats must be at least 1, got 0"),
        ({"test_size": 4}, "data.test_size must be at least 8, got 4"),
        (
            {"test_size": 64, "test_resize": 48},
            r"at least data.test_size \(64\), which is cut from it; got 48",
        ),
    ],
)
def test_error_settings(setting, words):
    with pytest.raises(ValueError, match=words):
        Data(**setting)
