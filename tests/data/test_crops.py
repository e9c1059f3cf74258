"""Random resized crops against torchvision, picture by picture with the same boxes."""

import samix  # noqa: F401  (prepares torchvision)

# isort: split
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from torch import Tensor
from torch.testing import assert_close
from torchvision import transforms
from torchvision.transforms.v2 import functional as tv

from samix.core.images import to_bytes
from samix.core.seeds import seeded
from samix.data.crops import Boxes, draw_boxes, random_resized_crop, resized_crop


def shades_apart(ours: Tensor, theirs: Tensor) -> int:
    return int((ours.int() - theirs.int()).abs().max())


@pytest.mark.parametrize(
    ("height", "width", "size"), [(32, 32, 32), (40, 50, 16), (9, 13, 24), (64, 21, 20), (30, 30, 7)]
)
def test_value_resized_crop_is_torchvisions(height, width, size, random_pictures):
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
        assert ks_2samp(mine.float(), other.float()).statistic < limit
    areas = [(boxes.height * boxes.width).float() for boxes in (ours, theirs)]
    assert ks_2samp(*areas).statistic < limit
    assert ks_2samp(ours.width / ours.height, theirs.width / theirs.height).statistic < limit


@pytest.mark.parametrize(("height", "width"), [(20, 90), (90, 20), (30, 30), (25, 100), (31, 11)])
def test_value_what_never_fits_is_torchvisions_central_box(height, width):
    ours = draw_boxes(torch.tensor([height]), torch.tensor([width]), 1.0)
    theirs = transforms.RandomResizedCrop.get_params(
        torch.empty(3, height, width), [1.0, 1.0], [3 / 4, 4 / 3]
    )
    assert tuple(int(edge) for edge in ours) == tuple(theirs)


def test_value_crops_of_a_list_are_those_of_a_tensor(random_pictures):
    pictures = random_pictures(6, 40, 30)
    with seeded(3):
        batch = random_resized_crop(pictures, 16, 0.2, 0.5)
    with seeded(3):
        listed = random_resized_crop(list(pictures), 16, 0.2, 0.5)
    assert shades_apart(to_bytes(batch), to_bytes(listed)) <= 1
