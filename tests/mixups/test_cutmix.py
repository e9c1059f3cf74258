"""CutMix: the box of its paper, its clipping and the corrected weight."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.mixed import blend
from samix.mixups.cutmix import cutmix_mask, outside_interval


def loop_mask(height: int, width: int, lam: float, row: int, column: int) -> torch.Tensor:
    """The mask of one box, pixel by pixel."""
    half_h = math.floor(height * math.sqrt(1 - lam)) // 2
    half_w = math.floor(width * math.sqrt(1 - lam)) // 2
    mask = torch.ones(1, height, width)
    for h in range(max(row - half_h, 0), min(row + half_h, height)):
        for w in range(max(column - half_w, 0), min(column + half_w, width)):
            mask[0, h, w] = 0
    return mask


@pytest.mark.parametrize("size", [(8, 8), (12, 20), (21, 9)])
def test_value_against_a_loop(size):
    lam = torch.tensor([0.0, 0.03, 0.25, 0.5, 0.77, 0.97, 1.0])
    masks = cutmix_mask(size, lam, torch.Generator().manual_seed(4))
    draw = torch.Generator().manual_seed(4)
    rows = torch.randint(size[0], (7,), generator=draw).tolist()
    columns = torch.randint(size[1], (7,), generator=draw).tolist()
    for mask, value, row, column in zip(masks, lam.double().tolist(), rows, columns, strict=True):
        assert torch.equal(mask, loop_mask(*size, value, row, column))


def test_value_outside_interval():
    outside = outside_interval(6, torch.tensor([0, 3, 5]), torch.tensor([5, 4, 1]))
    assert outside.int().tolist() == [[0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]]


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    lam=st.floats(0, 1, width=32),
    seed=st.integers(0, 1000),
)
def test_invariant_the_hole_is_one_box_of_at_most_the_drawn_area(height, width, lam, seed):
    lam = torch.tensor([lam])
    hole = cutmix_mask((height, width), lam, torch.Generator().manual_seed(seed))[0, 0] == 0
    rows, columns = hole.any(dim=1), hole.any(dim=0)
    assert torch.equal(hole, rows[:, None] & columns[None])
    assert int(rows.sum()) == 0 or int(rows.nonzero()[-1] - rows.nonzero()[0]) + 1 == int(rows.sum())
    assert hole.double().mean() <= 1 - float(lam) + 1e-6


def test_value_one_box_per_lam_and_one_for_a_single_lam():
    masks = cutmix_mask((16, 16), torch.full((6,), 0.5))
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) > 1
    assert cutmix_mask((16, 16), torch.tensor([0.5])).shape == (1, 1, 16, 16)


def test_value_a_side_below_two_pixels_keeps_the_image():
    assert (cutmix_mask((8, 8), torch.full((50,), 0.97)) == 1).all()


def test_value_clipping_raises_the_expected_weight():
    """E[lam] is about .68 at alpha = 1, not .5; lam of Beta(1, 1) by its quantiles."""
    masks = cutmix_mask((64, 64), torch.linspace(0, 1, 1000))
    assert float(masks.mean()) == pytest.approx(0.68, abs=0.02)


@pytest.mark.parametrize("lam", [0.3, 0.7])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_golden_box(golden, seed, lam):
    """The official box is ours for some centre (their generator differs); picture and weight are the same."""
    record = golden("g_cutmix_32")
    run = f"seed{seed}/lam{lam}"
    keep = 1 - record[f"{run}/mask"]  # the official mask shows the partner
    side = torch.full((32,), math.floor(32 * math.sqrt(1 - lam)))
    outside = outside_interval(32, torch.arange(32), side)  # [centre, pixel]
    hole = keep[0, 0] == 0
    assert (outside == ~hole.any(dim=1)).all(dim=1).any()
    assert (outside == ~hole.any(dim=0)).all(dim=1).any()
    x, index = record["img"], record[f"{run}/index"]
    torch.testing.assert_close(blend(x, x[index], keep), record[f"{run}/out"])
    assert float(keep[0].mean()) == pytest.approx(float(record[f"{run}/lam"]))
