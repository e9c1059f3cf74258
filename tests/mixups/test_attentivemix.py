"""AttentiveMix+: the strongest cells of the first image on its partner."""

import math

import pytest
import torch
from torch import Tensor

from samix.core.pairing import Pairing
from samix.mixups import Hints
from samix.mixups.attentivemix import AttentiveMix, attentivemix_mask, strongest_cells


def pictures(batch: int, size: tuple[int, int] = (12, 20), dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(batch, 3, *size, generator=torch.Generator().manual_seed(6)).to(dtype)


def feature_maps(batch: int, size: tuple[int, int] = (3, 4), channels: int = 5) -> Tensor:
    return torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(7))


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def loop_mask(maps: Tensor, lam: float, size: tuple[int, int]) -> Tensor:
    """The mask of one image's maps [C, h, w], cell by cell and pixel by pixel."""
    channels, rows, columns = maps.shape
    mean = {
        (r, c): sum(float(maps[k, r, c]) for k in range(channels)) / channels
        for r in range(rows)
        for c in range(columns)
    }
    count = min(max(1, math.floor(len(mean) * lam)), len(mean))
    shown = sorted(mean, key=lambda cell: -mean[cell])[:count]
    mask = torch.zeros(1, *size)
    for h in range(size[0]):
        for w in range(size[1]):
            mask[0, h, w] = (h * rows // size[0], w * columns // size[1]) in shown
    return mask


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize(
    ("cells", "size"), [((1, 1), (8, 8)), ((4, 4), (8, 8)), ((3, 4), (12, 20)), ((3, 2), (10, 9))]
)
def test_value_against_a_loop(cells, size, per_sample):
    x, maps, index = pictures(6, size), feature_maps(6, cells), torch.tensor([3, 0, 1, 5, 2, 4])
    lam = torch.tensor([0.0, 0.03, 0.25, 0.5, 0.77, 1.0]) if per_sample else torch.tensor([0.4])
    mixed = AttentiveMix()(x, Pairing(lam, index), Hints(maps=maps))
    for i, weight in enumerate(lam.expand(6).double().tolist()):
        mask = loop_mask(maps[i], weight, size)
        assert torch.equal(mixed.mask[i], mask)
        assert torch.equal(mixed.x[i], torch.where(mask.bool(), x[i], x[index[i]]))
        assert float(mixed.pairing.lam[i]) == pytest.approx(float(mask.mean()))


@pytest.mark.parametrize("cells", [(1, 1), (4, 4), (7, 7), (5, 3)])
def test_value_how_many_cells_show_the_first_image(cells):
    lam = torch.linspace(0, 1, 101)
    shown = strongest_cells(feature_maps(101, cells).mean(dim=1), lam).sum(dim=(1, 2))
    total = cells[0] * cells[1]
    expected = [min(max(1, math.floor(total * value)), total) for value in lam.double().tolist()]
    assert shown.tolist() == expected


def test_value_the_paper_shows_six_of_49_cells():
    assert int(strongest_cells(torch.rand(1, 7, 7), torch.tensor([6.5 / 49])).sum()) == 6


def test_value_the_cells_are_those_of_the_first_image():
    """Its bright corner is pasted; the partner's own bright corner is not looked at."""
    maps = torch.zeros(2, 8, 2, 2)
    maps[0, :, 0, 1] = 1
    maps[1, :, 1, 0] = 1
    x = torch.stack([torch.ones(3, 8, 8), torch.zeros(3, 8, 8)])
    mixed = AttentiveMix()(x, Pairing(torch.tensor([0.25]), torch.tensor([1, 0])), Hints(maps=maps))
    corner = torch.zeros(8, 8)
    corner[:4, 4:] = 1
    assert torch.equal(mixed.x[0, 0], corner)
    assert torch.equal(mixed.x[1, 0], 1 - corner.T)


def test_value_channels_are_averaged():
    """The last channel alone, as one published code has it, would choose the other cell."""
    maps = torch.tensor([[5.0, 0.0], [0.0, 1.0]]).view(1, 2, 1, 2)  # channel means 2.5 and .5
    assert attentivemix_mask(maps, torch.tensor([0.5]), (2, 2)).tolist() == [[[[1, 0], [1, 0]]]]


def test_value_equal_cells_are_taken_in_raster_order():
    cells = strongest_cells(torch.zeros(2, 3, 3), torch.tensor([0.5]))
    assert cells[0].flatten().tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert torch.equal(cells[0], cells[1])


def test_value_infinite_cells_do_not_change_the_count():
    strength = torch.tensor([[[math.inf, -math.inf], [0.0, 1.0]]])
    assert strongest_cells(strength, torch.tensor([0.5])).tolist() == [[[1, 0], [0, 1]]]


def test_value_lam_follows_beta_two_two():
    policy = AttentiveMix(per_sample=True)
    lam = policy.draw(4000, torch.Generator().manual_seed(0)).lam
    assert policy.alpha == 2
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(lam.var()) == pytest.approx(1 / 20, abs=0.004)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("map_dtype", [torch.float32, torch.bfloat16])
def test_shape_and_dtype_follow_the_images(dtype, map_dtype):
    for batch in (1, 3):
        x = pictures(batch, (8, 14), dtype)
        hints = Hints(maps=feature_maps(batch).to(map_dtype))
        mixed = AttentiveMix()(x, Pairing(torch.tensor([0.5]), ring(batch)), hints)
        assert mixed.mask.shape == (batch, 1, 8, 14) and mixed.mask.dtype == mixed.x.dtype == dtype
        assert mixed.pairing.lam.shape == (batch,) and mixed.pairing.lam.dtype == torch.float32


def test_invariant_lam_one_keeps_the_first_image():
    x, hints = pictures(4), Hints(maps=feature_maps(4))
    for lam in (torch.ones(1), torch.tensor([1.0, 0.3, 1.0, 0.3])):
        mixed = AttentiveMix()(x, Pairing(lam, ring(4)), hints)
        for i in (0, 2):
            assert torch.equal(mixed.x[i], x[i])
            assert float(mixed.pairing.lam[i]) == 1


def test_invariant_no_random_number_is_drawn():
    x, generator = pictures(3), torch.Generator().manual_seed(1)
    before = torch.get_rng_state(), generator.get_state()
    AttentiveMix()(x, Pairing(torch.tensor([0.5]), ring(3)), Hints(maps=feature_maps(3)), generator)
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.equal(before[1], generator.get_state())


def test_gradient_passes_the_blend_and_not_the_maps():
    x, maps = pictures(3).requires_grad_(), feature_maps(3).requires_grad_()
    mixed = AttentiveMix()(x, Pairing(torch.tensor([0.5]), ring(3)), Hints(maps=maps))
    assert not mixed.mask.requires_grad
    grad, none = torch.autograd.grad(mixed.x.sum(), (x, maps), allow_unused=True)
    assert none is None
    back = ring(3).argsort()  # image j is the partner of image back[j]
    torch.testing.assert_close(grad, (mixed.mask + 1 - mixed.mask[back]).expand_as(x))


def test_error_maps_are_needed():
    x = pictures(2)
    with pytest.raises(ValueError, match=r"AttentiveMix needs maps. Pass hints=Hints\(maps=...\)"):
        AttentiveMix()(x, Pairing(torch.tensor([0.5]), ring(2)))


@pytest.mark.parametrize(("settings", "message"), [({"alpha": 0.0}, "alpha"), ({"prob": 1.5}, "prob")])
def test_error_bad_settings(settings, message):
    with pytest.raises(ValueError, match=f"mixup.{message} must"):
        AttentiveMix(**settings)
