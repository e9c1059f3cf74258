"""CutMix: the box of its paper, its clipping and the corrected weight."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.mixed import blend
from samix.core.pairing import Pairing
from samix.mixups import CutMix, Hints, MixupCutMix
from samix.mixups.cutmix import box_around, cutmix_mask, interval, outside

BOXES = ["paper", "whole"]


def loop_mask(height: int, width: int, lam: float, row: int, column: int, box: str) -> torch.Tensor:
    """The mask of one box, pixel by pixel."""
    side_h, side_w = (math.floor(side * math.sqrt(1 - lam)) for side in (height, width))
    odd = 1 if box == "whole" else 0
    mask = torch.ones(1, height, width)
    for h in range(max(row - side_h // 2, 0), min(row + (side_h + odd) // 2, height)):
        for w in range(max(column - side_w // 2, 0), min(column + (side_w + odd) // 2, width)):
            mask[0, h, w] = 0
    return mask


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (21, 9)])
def test_value_against_a_loop(size, box):
    lam = torch.tensor([0.0, 0.03, 0.25, 0.5, 0.77, 0.97, 1.0])
    masks = cutmix_mask(size, lam, torch.Generator().manual_seed(4), box)
    draw = torch.Generator().manual_seed(4)
    rows = torch.randint(size[0], (7,), generator=draw).tolist()
    columns = torch.randint(size[1], (7,), generator=draw).tolist()
    for mask, value, row, column in zip(masks, lam.double().tolist(), rows, columns, strict=True):
        assert torch.equal(mask, loop_mask(*size, value, row, column, box))


def test_value_intervals_of_both_boxes():
    centre, side = torch.tensor([0, 3, 5]), torch.tensor([5, 4, 1])
    paper, whole = (outside(6, *interval(centre, side, box)).int().tolist() for box in BOXES)
    assert paper == [[0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]]
    assert whole == [[0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0]]


def mean_area(size: int, lam: torch.Tensor, box: str, border: int) -> torch.Tensor:
    """The area of a square box for each lam, mean over all centres; cut off that many pixels outside."""
    centre, side = torch.arange(size)[:, None], (size * (1 - lam.double()).sqrt()).long()
    start, end = interval(centre, side[None], box)  # [centre, lam]
    length = end.clamp(max=size + border) - start.clamp(min=-border)
    return (length.double().mean(dim=0) / size) ** 2


@pytest.mark.parametrize("border", [0, 32], ids=["cut off", "free"])
def test_value_the_whole_box_is_nearer_to_the_drawn_area(border):
    """For every lam, the mean over all centres; so the whole box is the default."""
    lam = torch.linspace(0, 1, 101)
    paper, whole = ((mean_area(32, lam, box, border) - (1 - lam)).abs() for box in BOXES)
    assert (whole <= paper + 1e-9).all() and float(paper.mean()) > float(whole.mean()) + 0.01
    assert CutMix().box == MixupCutMix().members[1].box == "whole"


@pytest.mark.parametrize("lam", [0.1, 0.5, 0.83])
def test_value_the_whole_box_is_timms(lam):
    import numpy as np
    import timm
    from timm.data.mixup import rand_bbox

    if tuple(map(int, timm.__version__.split(".")[:3])) < (1, 0, 29):
        pytest.skip("before 1.0.29 timm's box was the paper's")

    for seed in range(20):
        np.random.seed(seed)  # noqa: NPY002  (timm's own source of draws)
        top, bottom, left, right = rand_bbox((1, 3, 33, 20), lam)
        np.random.seed(seed)  # noqa: NPY002
        row, column = (torch.tensor([np.random.randint(0, side)]) for side in (33, 20))  # noqa: NPY002
        ours = box_around((33, 20), row, column, torch.tensor([lam], dtype=torch.float64), "whole")
        limits = (0, 33), (0, 33), (0, 20), (0, 20)  # timm's box ends at the border
        cut = [min(max(int(edge), low), high) for edge, (low, high) in zip(ours, limits, strict=True)]
        assert cut == [top, bottom, left, right]


def test_value_minmax_draws_the_sides_and_keeps_the_box_inside():
    lam = torch.tensor([0.5, 1.0]).repeat(200)
    masks = CutMix(minmax=(0.2, 0.8)).mask(
        torch.zeros(400, 3, 20, 30),
        Pairing(lam, torch.arange(400)),
        Hints(),
        torch.Generator().manual_seed(0),
    )
    hole = masks[::2, 0] == 0
    heights, widths = hole.any(dim=2).sum(dim=1), hole.any(dim=1).sum(dim=1)
    assert torch.equal(hole.sum(dim=(1, 2)), heights * widths)
    assert sorted(heights.unique().tolist()) == list(range(4, 16))
    assert sorted(widths.unique().tolist()) == list(range(6, 24))
    assert (masks[1::2] == 1).all(), "lam = 1 stays as it is"


@pytest.mark.parametrize("minmax", [(0.8, 0.2), (-0.1, 0.5), (0.5, 1.2)])
def test_error_minmax_must_rise_within_the_image(minmax):
    with pytest.raises(ValueError, match=r"mixup.minmax must be a rising pair within \[0, 1\]"):
        CutMix(minmax=minmax)


def test_error_unknown_box(unchecked_shapes):
    with pytest.raises(ValueError, match="unknown mixup.box 'hole'.*whole, paper"):
        CutMix(box="hole")


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    lam=st.floats(0, 1, width=32),
    seed=st.integers(0, 1000),
    box=st.sampled_from(BOXES),
)
def test_invariant_the_hole_is_one_box_of_at_most_the_drawn_area(height, width, lam, seed, box):
    lam = torch.tensor([lam])
    hole = cutmix_mask((height, width), lam, torch.Generator().manual_seed(seed), box)[0, 0] == 0
    rows, columns = hole.any(dim=1), hole.any(dim=0)
    assert torch.equal(hole, rows[:, None] & columns[None])
    assert int(rows.sum()) == 0 or int(rows.nonzero()[-1] - rows.nonzero()[0]) + 1 == int(rows.sum())
    assert hole.double().mean() <= 1 - float(lam) + 1e-6


def test_value_one_box_per_lam_and_one_for_a_single_lam():
    masks = cutmix_mask((16, 16), torch.full((6,), 0.5))
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) > 1
    assert cutmix_mask((16, 16), torch.tensor([0.5])).shape == (1, 1, 16, 16)


@pytest.mark.parametrize("policy", [CutMix(), CutMix(box="paper"), CutMix(minmax=(0.1, 0.9))], ids=str)
@pytest.mark.parametrize("kind", ["plain", "channels-last", "with gradient", "half"])
def test_value_a_pasted_box_is_the_blend_by_its_mask(policy, kind):
    """Bit for bit, images, masks and weights, with the same draws."""
    x = torch.rand(5, 3, 13, 22).half() if kind == "half" else torch.rand(5, 3, 13, 22)
    x = x.contiguous(memory_format=torch.channels_last) if kind == "channels-last" else x
    x.requires_grad_(kind == "with gradient")
    for seed, lam in enumerate(torch.linspace(0, 1, 41)):
        pairing = Pairing(lam.view(1), torch.tensor([1, 2, 3, 4, 0]))
        pasted, blended = (
            mix(x, pairing, Hints(), torch.Generator().manual_seed(seed))
            for mix in (policy.mix, super(CutMix, policy).mix)
        )
        assert torch.equal(pasted.x, blended.x) and torch.equal(pasted.mask, blended.mask)
        assert torch.equal(pasted.pairing.lam, blended.pairing.lam)
        assert pasted.x.stride() == x.stride() and pasted.x.requires_grad == x.requires_grad


def test_gradient_reaches_both_images_of_a_pasted_box():
    x = torch.rand(2, 3, 8, 8, requires_grad=True)
    mixed = CutMix()(x, Pairing(torch.tensor([0.5]), torch.tensor([1, 0])))
    mixed.x[0].sum().backward()
    shown = mixed.mask[0].expand(3, -1, -1)
    assert torch.equal(x.grad[0], shown) and torch.equal(x.grad[1], 1 - shown)


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
    free = outside(32, *interval(torch.arange(32), side, "paper"))  # [centre, pixel]
    hole = keep[0, 0] == 0
    assert (free == ~hole.any(dim=1)).all(dim=1).any()
    assert (free == ~hole.any(dim=0)).all(dim=1).any()
    x, index = record["img"], record[f"{run}/index"]
    torch.testing.assert_close(blend(x, x[index], keep), record[f"{run}/out"])
    assert float(keep[0].mean()) == pytest.approx(float(record[f"{run}/lam"]))
