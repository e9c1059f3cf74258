"""GridMix: windows, cells and holes of GridMixup against loops, and the window larger than the image."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.pairing import Pairing
from samix.mixups.gridmix import Grid, GridMix, grid_mask, place_window

SIZES = [(8, 8), (12, 20), (21, 9), (32, 32)]


def loop_grid_mask(
    size: tuple[int, int], top: int, left: int, height: int, width: int, cell: int, lam: float
) -> torch.Tensor:
    """Holes written cell by cell, cut at the window's border."""
    mask = torch.ones(1, *size)
    if lam == 1:
        return mask
    side = min(max(math.floor(cell * math.sqrt(1 - lam)), 1), cell - 1)
    for i in range(math.ceil(height / cell)):
        for j in range(math.ceil(width / cell)):
            for h in range(i * cell, min(i * cell + side, height)):
                for w in range(j * cell, min(j * cell + side, width)):
                    mask[0, top + h, left + w] = 0
    return mask


def grids(policy: GridMix, size: tuple[int, int], count: int, seed: int = 0) -> list[list[int]]:
    """The drawn windows as rows of top, left, height, width, cell."""
    draw = torch.Generator().manual_seed(seed)
    return torch.stack(list(policy.draw_grid(size, count, draw)), dim=1).tolist()


@pytest.mark.parametrize("size", SIZES)
def test_value_mask_against_a_loop(size):
    lam = torch.tensor([0.0, 0.03, 0.26, 0.5, 0.77, 0.97, 0.9999, 1.0]).repeat(5)
    x = torch.rand(40, 3, *size)
    pairing = Pairing(lam, torch.arange(40).roll(1))
    masks = GridMix()(x, pairing, generator=torch.Generator().manual_seed(0)).mask
    for mask, value, grid in zip(masks, lam.tolist(), grids(GridMix(), size, 40), strict=True):
        assert torch.equal(mask, loop_grid_mask(size, *grid, value))


@pytest.mark.parametrize("size", SIZES)
def test_value_window_against_the_formula(size):
    area = torch.tensor([0.5, 0.7, 1.0, 0.9, 0.6])
    aspect = torch.tensor([0.51, 1.31, 1.97, 0.53, 1.01])
    place = torch.tensor([[0.0, 0.3, 0.99, 0.5, 0.7], [0.9, 0.1, 0.4, 0.0, 0.99]])
    windows = torch.stack(place_window(size, area, aspect, place), dim=1).tolist()
    for k in range(5):
        wide = math.floor(math.sqrt(float(area[k]) * size[0] * size[1] / float(aspect[k])))
        height, width = min(math.floor(wide * float(aspect[k])), size[0]), min(wide, size[1])
        top = math.floor((size[0] - height) * float(place[0, k]))
        left = math.floor((size[1] - width) * float(place[1, k]))
        assert windows[k] == [top, left, height, width]


@given(
    height=st.integers(8, 48),
    width=st.integers(8, 48),
    lam=st.floats(0, 1, width=32),
    seed=st.integers(0, 99),
)
def test_invariant_windows_and_holes_lie_in_the_image(height, width, lam, seed):
    size = (height, width)
    for top, left, high, wide, cell in grids(GridMix(), size, 8, seed):
        assert top >= 0 and left >= 0 and high >= 1 and wide >= 1
        assert top + high <= height and left + wide <= width
        mask = grid_mask(
            size, Grid(*torch.tensor([[top], [left], [high], [wide], [cell]])), torch.tensor([lam])
        )
        inner = torch.ones(size)
        inner[top : top + high, left : left + wide] = mask[0, 0, top : top + high, left : left + wide]
        assert torch.equal(mask[0, 0], inner)
        assert bool((mask == 0).any()) == (lam < 1 and cell > 1), "no hole may be lost"


def test_value_cells_across_the_window():
    """2 to 6 cells, all of them drawn; the last one may be cut."""
    widths = grids(GridMix(), (64, 64), 500)
    assert {math.ceil(width / cell) for *_, width, cell in widths} == {2, 3, 4, 5, 6}
    assert {
        math.ceil(width / cell) for *_, width, cell in grids(GridMix(cells_min=3, cells_max=3), (64, 64), 99)
    } == {3}


def test_value_most_windows_are_larger_than_the_image():
    """The trap: in about 58 % of the draws a side must be cut down."""
    cut = [64 in (height, width) for _, _, height, width, _ in grids(GridMix(), (64, 64), 4000)]
    assert sum(cut) / 4000 == pytest.approx(0.58, abs=0.04)


def test_value_places_are_spread():
    policy = GridMix(area=(0.5, 0.5), aspect=(1.0, 1.0))
    rows = grids(policy, (64, 64), 2000)
    assert {tuple(row[2:4]) for row in rows} == {(45, 45)}
    assert {row[0] for row in rows} == {row[1] for row in rows} == set(range(19))


def test_value_the_weight_exceeds_lam_and_never_reaches_zero():
    policy = GridMix()
    for lam in (0.0, 0.3, 0.6):
        pairing = Pairing(torch.full((200,), lam), torch.arange(200).roll(1))
        weight = policy(torch.rand(200, 3, 32, 32), pairing).pairing.lam
        assert weight.min() > 0 and float(weight.mean()) > lam + 0.05


def test_value_a_full_window_shows_the_drawn_share():
    """With the whole image as window and large cells, the holes' share is 1 - lam up to rounding."""
    policy = GridMix(area=(1.0, 1.0), aspect=(1.0, 1.0), cells_min=2, cells_max=4)
    lam = torch.linspace(0.05, 0.95, 19)
    mixed = policy(torch.rand(19, 3, 96, 96), Pairing(lam, torch.arange(19).roll(1)))
    torch.testing.assert_close(mixed.pairing.lam, lam, atol=0.05, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_lam_one_keeps_its_image_beside_others(dtype):
    x = torch.randn(3, 3, 16, 20).to(dtype)
    mixed = GridMix()(x, Pairing(torch.tensor([1.0, 0.4, 1.0]), torch.tensor([1, 2, 0])))
    assert torch.equal(mixed.x[[0, 2]], x[[0, 2]]) and not torch.equal(mixed.x[1], x[1])
    assert mixed.mask.dtype == dtype and mixed.pairing.lam[[0, 2]].tolist() == [1.0, 1.0]


def test_value_cells_of_one_pixel_have_no_hole():
    x = torch.rand(50, 3, 8, 8)
    mixed = GridMix(cells_min=8, cells_max=8)(x, Pairing(torch.zeros(50), torch.arange(50).roll(1)))
    assert torch.equal(mixed.x, x) and (mixed.pairing.lam == 1).all()


def test_shape_one_grid_per_lam_and_a_batch_of_one():
    x = torch.rand(4, 3, 16, 12)
    assert GridMix()(x, Pairing(torch.tensor([0.5]), torch.arange(4).roll(1))).mask.shape == (1, 1, 16, 12)
    masks = GridMix()(x, Pairing(torch.full((4,), 0.5), torch.arange(4).roll(1))).mask
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) > 1
    alone = GridMix()(x[:1], Pairing(torch.tensor([0.5]), torch.tensor([0])))
    torch.testing.assert_close(alone.x, x[:1])


def test_invariant_the_generator_alone_decides():
    policy, before = GridMix(per_sample=True), torch.get_rng_state()
    x = torch.linspace(0, 1, 6 * 3 * 12 * 8).view(6, 3, 12, 8)

    def run(seed: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed)
        return policy(x, policy.draw(6, draw), generator=draw).x

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"cells_min": 0}, r"1 <= cells_min <= cells_max, got 0 and 6"),
        ({"cells_min": 7}, r"1 <= cells_min <= cells_max, got 7 and 6"),
        ({"area": (0.0, 1.0)}, r"mixup.area must be a rising pair within \(0, 1\], got \(0.0, 1.0\)"),
        ({"area": (0.5, 1.5)}, r"mixup.area must be"),
        ({"area": (0.9, 0.5)}, r"mixup.area must be"),
        ({"aspect": (0.0, 1.0)}, r"mixup.aspect must be a rising pair of positive numbers, got \(0.0, 1.0\)"),
        ({"aspect": (2.0, 1.0)}, r"mixup.aspect must be"),
        ({"aspect": (0.5, math.inf)}, r"mixup.aspect must be"),
    ],
)
def test_error_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        GridMix(**settings)
