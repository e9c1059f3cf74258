"""ResizeMix: the shrunk partner pixel by pixel, its draws, its boxes and its dense targets."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.mixups.published import published
from samix.mixups.resizemix import Interval, ResizeMix, draw_interval

SIZES = [(8, 8), (12, 20), (21, 9)]


def box_of(mask: torch.Tensor) -> tuple[int, int, int, int]:
    """Top, left, height and width of the hole of [1, H, W], which must be a full rectangle."""
    hole = mask[0] == 0
    rows, columns = hole.any(dim=1).nonzero().flatten(), hole.any(dim=0).nonzero().flatten()
    top, left, height, width = int(rows[0]), int(columns[0]), len(rows), len(columns)
    assert bool(hole[top : top + height, left : left + width].all()) and int(hole.sum()) == height * width
    return top, left, height, width


def loop_paste(first: torch.Tensor, partner: torch.Tensor, box: tuple[int, int, int, int]) -> torch.Tensor:
    """The whole partner [K, H, W] in the box, one pixel at a time."""
    out, (top, left, height, width) = first.clone(), box
    for h in range(height):
        for w in range(width):
            source = math.floor(h * first.shape[1] / height), math.floor(w * first.shape[2] / width)
            out[:, top + h, left + w] = partner[:, source[0], source[1]]
    return out


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shared", [True, False])
def test_value_against_a_loop(size, shared):
    x, index = torch.rand(6, 3, *size), torch.tensor([3, 0, 1, 5, 2, 4])
    tau = torch.tensor([0.61]) if shared else torch.tensor([0.31, 0.47, 0.61, 0.79, 0.96, 1.0])
    mixed = ResizeMix()(x, Pairing(1 - tau**2, index))
    for i in range(6):
        side = float(tau[i % len(tau)])
        box = box_of(mixed.mask[i])
        assert box[2:] == (math.floor(side * size[0]), math.floor(side * size[1]))
        assert torch.equal(mixed.x[i], loop_paste(x[i], x[index[i]], box))
        assert float(mixed.pairing.lam[i]) == pytest.approx(
            1 - box[2] * box[3] / (size[0] * size[1]), abs=1e-6
        )


@pytest.mark.parametrize("length, side", [(32, 3), (32, 25), (64, 51), (21, 8)])
def test_value_nearest_is_that_of_interpolate(length, side):
    interval = Interval(torch.tensor([5]), torch.tensor([side]))
    line = torch.arange(length).float().view(1, 1, 1, length)
    expected = F.interpolate(line, size=(1, side), mode="nearest").flatten().long()
    assert torch.equal(interval.nearest(length)[0, 5 : 5 + side], expected[: length - 5])


def test_value_nearest_is_exact_where_float32_is_not():
    """224 -> 48 pixels: pixel 27 shows 27 * 224 / 48 = 126, where a rounded scale gives 125."""
    for side in (46, 48, 92, 96, 166, 184, 192):
        source = Interval(torch.tensor([0]), torch.tensor([side])).nearest(224)[0, :side]
        assert source.tolist() == [k * 224 // side for k in range(side)]


@pytest.mark.parametrize("size, length", [(8, 3), (8, 8), (9, 4), (20, 13), (8, 0)])
def test_value_places_against_a_loop(size, length):
    """A uniform centre, moved back inside: the border gets more boxes than the places between."""
    lengths = torch.full((40 * size,), length)
    start = draw_interval(size, lengths, torch.Generator().manual_seed(2)).start
    centres = torch.randint(size, (40 * size,), generator=torch.Generator().manual_seed(2))
    for begin, centre in zip(start.tolist(), centres.tolist(), strict=True):
        assert begin == min(max(centre - length // 2, 0), size - length)
    assert set(start.tolist()) == {min(max(c - length // 2, 0), size - length) for c in range(size)}


@pytest.mark.parametrize("lam", [0.0, 0.36, 0.5, 0.75, 0.97])
def test_invariant_the_patch_is_complete_and_differs_in_place(lam):
    x = torch.rand(60, 3, 16, 24)
    mixed = ResizeMix()(x, Pairing(torch.tensor([lam]), torch.arange(60).roll(1)))
    boxes = [box_of(mask) for mask in mixed.mask]
    assert len({box[2:] for box in boxes}) == 1, "no patch is cut off"
    assert len({box[:2] for box in boxes}) > 10 or lam == 0
    assert len(mixed.pairing.lam.unique()) == 1


def test_value_draws_are_uniform_sides():
    pairing = ResizeMix(per_sample=True).draw(20000, torch.Generator().manual_seed(0))
    tau = (1 - pairing.lam).sqrt()
    assert 0.0999 < tau.min() < 0.101 and 0.799 < tau.max() < 0.8001
    assert tau.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist() == pytest.approx(
        [0.275, 0.45, 0.625], abs=0.01
    )
    assert float(pairing.lam.mean()) == pytest.approx(0.757, abs=0.005)
    assert (pairing.index != torch.arange(20000)).all()


def test_value_label_weights():
    """Between .36 and .99 with a mean of about .756 at 224 pixels."""
    policy, draw = ResizeMix(per_sample=True), torch.Generator().manual_seed(0)
    tau = (1 - policy.draw(5000, draw).lam).sqrt()
    weight = 1 - ((tau * 224).long() / 224) ** 2
    assert weight.min() >= 0.36 and weight.max() <= 0.9905
    assert float(weight.mean()) == pytest.approx(0.758, abs=0.01)


def test_value_draws_from_alpha():
    """Beta(1, 1) leaves the range in 30 % of the draws, which are spread over it: uniform again."""
    tau = (
        1 - ResizeMix(from_alpha=True, per_sample=True).draw(8000, torch.Generator().manual_seed(0)).lam
    ).sqrt()
    assert tau.min() > 0.0999 and tau.max() < 0.8001
    assert float(tau.mean()) == pytest.approx(0.45, abs=0.01)
    narrow = ResizeMix(from_alpha=True, alpha=200.0, per_sample=True).draw(
        2000, torch.Generator().manual_seed(0)
    )
    tau = (1 - narrow.lam).sqrt()
    assert float(tau.mean()) == pytest.approx(0.5, abs=0.005) and float(tau.std()) < 0.05
    wide = ResizeMix(from_alpha=True, alpha=0.01, per_sample=True).draw(
        4000, torch.Generator().manual_seed(0)
    )
    assert float((1 - wide.lam).sqrt().mean()) == pytest.approx(0.45, abs=0.02)


def test_value_prob_leaves_pairs_as_they_are():
    lam = ResizeMix(prob=0.3, per_sample=True).draw(4000, torch.Generator().manual_seed(0)).lam
    assert float((lam == 1).float().mean()) == pytest.approx(0.7, abs=0.03)
    assert ResizeMix(prob=0.0).draw(3).lam.tolist() == [1.0]


def test_shape_draw():
    assert ResizeMix().draw(5).lam.shape == (1,)
    pairing = ResizeMix(per_sample=True).draw(5)
    assert pairing.lam.shape == (5,) and pairing.index.shape == (5,)
    assert ResizeMix().draw(1).index.tolist() == [0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_lam_one_keeps_its_image_beside_others(dtype):
    x = torch.randn(3, 3, 8, 20).to(dtype)
    mixed = ResizeMix()(x, Pairing(torch.tensor([1.0, 0.4, 1.0]), torch.tensor([1, 2, 0])))
    assert torch.equal(mixed.x[[0, 2]], x[[0, 2]]) and not torch.equal(mixed.x[1], x[1])
    assert mixed.mask.dtype == dtype and mixed.pairing.lam[[0, 2]].tolist() == [1.0, 1.0]


def test_value_a_patch_below_one_pixel_keeps_the_image():
    x = torch.rand(4, 3, 8, 8)
    mixed = ResizeMix()(x, Pairing(torch.tensor([1 - 0.11**2]), torch.arange(4).roll(1)))
    assert torch.equal(mixed.x, x) and (mixed.pairing.lam == 1).all()


def test_value_a_batch_of_one_is_pasted_into_itself():
    x = torch.rand(1, 3, 12, 8)
    mixed = ResizeMix()(x, Pairing(torch.tensor([0.5]), torch.tensor([0])))
    assert torch.equal(mixed.x[0], loop_paste(x[0], x[0], box_of(mixed.mask[0])))


def test_value_white_with_black_shows_the_weight():
    x = torch.stack([torch.ones(3, 12, 20), torch.zeros(3, 12, 20)])
    mixed = ResizeMix()(x, Pairing(torch.tensor([0.6]), torch.tensor([1, 0])))
    weight = float(mixed.pairing.lam[0])
    assert mixed.x.mean(dim=(1, 2, 3)).tolist() == pytest.approx([weight, 1 - weight], abs=1e-6)


@pytest.mark.parametrize("planes", [1, 4])
def test_value_class_maps_shrink_and_move_with_the_picture(planes):
    x, index = torch.rand(5, 3, 12, 20), torch.arange(5).roll(1)
    classes = torch.randint(9, (5, planes, 12, 20))
    mixed = ResizeMix()(x, Pairing(torch.tensor([0.4]), index))
    target = mixed.dense(classes[:, 0] if planes == 1 else classes)
    assert target.dtype == classes.dtype
    for i in range(5):
        expected = loop_paste(classes[i], classes[index[i]], box_of(mixed.mask[i]))
        assert torch.equal(target[i], expected[0] if planes == 1 else expected)


def test_value_a_picture_as_its_own_target_stays_its_target():
    x = torch.rand(5, 3, 12, 20)
    mixed = ResizeMix()(x, Pairing(torch.tensor([0.4]), torch.arange(5).roll(1)))
    assert torch.equal(mixed.dense(x), mixed.x)


def test_gradient_reaches_the_shown_pixels_only():
    x, index = torch.rand(2, 3, 8, 12, requires_grad=True), torch.tensor([1, 0])
    mixed = ResizeMix()(x, Pairing(torch.tensor([0.5]), index))
    (grad,) = torch.autograd.grad(mixed.x[0].sum(), x)
    assert torch.equal(grad[0], mixed.mask[0].expand(3, 8, 12))
    _, _, height, width = box_of(mixed.mask[0])
    expected = torch.zeros(8, 12)
    for h in range(height):
        for w in range(width):
            expected[h * 8 // height, w * 12 // width] = 1
    assert torch.equal(grad[1], expected.expand(3, 8, 12))


def test_invariant_nothing_is_changed_in_place_and_the_generator_alone_decides():
    policy, before = ResizeMix(prob=0.5, per_sample=True), torch.get_rng_state()
    x = torch.arange(6 * 3 * 12 * 8).float().view(6, 3, 12, 8)

    def run(seed: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed)
        return policy(x, policy.draw(6, draw), generator=draw).x

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state())
    assert x._version == 0


@pytest.mark.parametrize("low, high", [(0.0, 0.5), (0.4, 0.3), (0.1, 1.5)])
def test_error_scales(low, high):
    with pytest.raises(ValueError, match=rf"scale_min <= scale_max <= 1, got {low} and {high}"):
        ResizeMix(scale_min=low, scale_max=high)


def test_error_an_alpha_that_nothing_reads():
    """It would be accepted and do nothing."""
    with pytest.raises(ValueError, match=r"mixup.alpha must stay 1 where .*from_alpha is false.*got 0.2"):
        ResizeMix(alpha=0.2)
    assert ResizeMix(alpha=0.2, from_alpha=True).alpha == 0.2


def test_value_alpha_moves_the_scale_of_resnet_18_on_imagenet():
    """alpha .2 leaves (.1, .8) in most draws; those that stay lie nearer to its ends than uniform ones."""
    small, even = (published("resizemix", data) for data in ("imagenet-r18", "imagenet"))
    taus = [
        (1 - replace(policy, per_sample=True).draw(20000, torch.Generator().manual_seed(0)).lam).sqrt()
        for policy in (small, even)
    ]
    assert float(taus[1].std()) == pytest.approx(0.7 / 12**0.5, abs=0.005)  # Beta(1, 1) is uniform
    assert float(taus[0].std()) > float(taus[1].std()) + 0.002
