"""Boxes of rows and columns, and one stretched into another."""

import pytest
import torch
from torch.nn import functional as F

from samix.mixups.regions import Interval, Region, stretch_into


def region(*sides: tuple[int, int]) -> Region:
    """One box: start and length of its rows, then of its columns."""
    rows, columns = (Interval(torch.tensor([start]), torch.tensor([length])) for start, length in sides)
    return Region(rows, columns)


def test_value_inside_and_filled():
    box = region((1, 2), (0, 3))
    expected = torch.zeros(4, 5, dtype=torch.bool)
    expected[1:3, :3] = True
    assert torch.equal(box.inside((4, 5))[0], expected) and box.filled.tolist() == [True]
    assert region((1, 2), (3, 0)).filled.tolist() == [False]


@pytest.mark.parametrize("lengths", [(1, 1), (1, 7), (7, 1), (5, 9), (9, 5), (8, 8)])
def test_value_stretching_equals_torchs_interpolation(lengths):
    x, (into, out_of) = torch.rand(2, 2, 12, 14, generator=torch.Generator().manual_seed(0)), lengths
    found = stretch_into(x, region((2, into), (3, into)), region((1, out_of), (4, out_of)))
    patch = x[..., 1 : 1 + out_of, 4 : 4 + out_of]
    expected = F.interpolate(patch, size=(into, into), mode="bilinear", align_corners=True)
    torch.testing.assert_close(found[..., 2 : 2 + into, 3 : 3 + into], expected)


def test_value_boxes_of_one_size_are_moved_exactly():
    x = torch.rand(1, 3, 12, 14, generator=torch.Generator().manual_seed(0))
    found = stretch_into(x, region((2, 5), (3, 7)), region((6, 5), (0, 7)))
    assert torch.equal(found[..., 2:7, 3:10], x[..., 6:11, 0:7])


def test_value_whole_numbers_are_read_at_the_nearest_place():
    classes = torch.arange(12).view(1, 1, 1, 12).expand(1, 1, 2, 12)
    found = stretch_into(classes, region((0, 2), (0, 3)), region((0, 2), (2, 9)))
    assert found[0, 0, 0, :3].tolist() == [2, 6, 10]
    assert stretch_into(classes > 5, region((0, 2), (0, 3)), region((0, 2), (2, 9))).dtype == torch.bool
