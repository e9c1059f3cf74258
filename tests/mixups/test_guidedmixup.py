"""GuidedMixup: pairs by distance, masks by saliency, against loops."""

import itertools

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as vision

from samix.core.pairing import Pairing
from samix.mix import Mix
from samix.mixups import GuidedMixup, Hints
from samix.mixups.guidedmixup import as_density, farthest_cycle, guided_mask
from samix.mixups.spectral import spectral_residual

SIZE = (12, 20)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(batch: int = 6) -> Tensor:
    return torch.rand(batch, 3, *SIZE, generator=seeded(3))


def maps(batch: int = 6) -> Tensor:
    return torch.rand(batch, *SIZE, generator=seeded(4))


def ring(batch: int = 6) -> Tensor:
    return torch.arange(batch).roll(1)


def half(batch: int = 6) -> Pairing:
    return Pairing(torch.tensor([0.5]), ring(batch))


def slow_cycle(density: Tensor, start: int) -> list[int]:
    """Step by step: the farthest of those that are left, and home in the end."""
    rows, partner, here = density.flatten(1).tolist(), [0] * len(density), start
    left = set(range(len(density))) - {start}
    while left:
        distance = {j: sum((a - b) ** 2 for a, b in zip(rows[here], rows[j], strict=True)) for j in left}
        partner[here] = max(distance, key=distance.get)
        here = partner[here]
        left.remove(here)
    partner[here] = start
    return partner


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_value_pairs_against_a_loop(count):
    density = as_density(maps(count))
    for start in range(count):
        index = farthest_cycle(density, start)
        assert index.tolist() == slow_cycle(density, start)
        assert sorted(index.tolist()) == list(range(count))
        here, seen = start, {start}
        while int(index[here]) not in seen:
            here = int(index[here])
            seen.add(here)
        assert len(seen) == count  # one cycle through all


def test_value_density_is_blurred_and_sums_to_one():
    blurred = vision.gaussian_blur(maps(), [7, 7], [3.0, 3.0])
    torch.testing.assert_close(as_density(maps()), blurred / blurred.sum(dim=(1, 2), keepdim=True))
    torch.testing.assert_close(as_density(torch.zeros(1, 4, 5)), torch.full((1, 4, 5), 0.05))


@pytest.mark.parametrize("lam", [[0.5], [0.0, 0.2, 0.5, 0.7, 0.9, 1.0]])
def test_value_mask_against_a_loop(lam):
    first, second = as_density(maps()), as_density(maps()[ring()])
    mask = guided_mask(first, second, torch.tensor(lam))
    for i in range(6):
        share = lam[i % len(lam)]
        for y, x in itertools.product(range(SIZE[0]), range(SIZE[1])):
            own, other = share * float(first[i, y, x]), (1 - share) * float(second[i, y, x])
            assert float(mask[i, 0, y, x]) == pytest.approx(own / (own + other), abs=1e-5)


def test_value_where_neither_is_salient_lam_decides():
    nothing = torch.zeros(1, 2, 2)
    assert (guided_mask(nothing, nothing, torch.tensor([0.3])) == 0.3).all()


@pytest.mark.parametrize("saliency", ["spectral", "gradient"])
def test_value_the_whole(saliency):
    x, hints = images(), Hints(pixels=images(), saliency=maps())
    density = as_density(spectral_residual(x) if saliency == "spectral" else maps())
    for seed in range(4):
        mixed = GuidedMixup(saliency=saliency)(x, half(), hints, seeded(seed))
        start = int(torch.randint(6, (), generator=seeded(seed)))
        index = torch.tensor(slow_cycle(density, start))
        mask = (density / (density + density[index]))[:, None]
        torch.testing.assert_close(mixed.mask, mask)
        torch.testing.assert_close(mixed.x, mask * x + (1 - mask) * x[index])
        torch.testing.assert_close(mixed.pairing.lam, mask.mean(dim=(1, 2, 3)))
        assert torch.equal(mixed.pairing.index, index)


def test_value_pairs_lie_farther_apart_than_drawn_ones():
    x = torch.zeros(8, 3, 16, 16)
    for i in range(8):
        x[i, :, 4 * (i // 2) : 4 * (i // 2) + 4, 2:6] = 1.0  # two pictures each with the object at one place
    index = GuidedMixup()(x, half(8), Hints(pixels=x), seeded()).pairing.index
    assert (index // 2 != torch.arange(8) // 2).all()


def test_value_without_greed_and_to_look_at_the_pairs_are_those_given():
    x, hints = images(), Hints(pixels=images())
    drawn = GuidedMixup(greedy=False)(x, half(), hints)
    shown = GuidedMixup().picture(x, half(), hints)
    assert torch.equal(drawn.pairing.index, ring()) and torch.equal(drawn.x, shown.x)


def test_value_lam_is_a_half_and_each_saliency_has_its_needs():
    assert GuidedMixup().draw(4).lam.tolist() == [0.5]
    assert GuidedMixup(prob=0.0).draw(4).lam.tolist() == [1.0]
    assert GuidedMixup().needs == ("pixels",)
    assert GuidedMixup(saliency="gradient").needs == ("saliency",)


def test_value_the_drop_in_labels_the_new_pairs():
    """With the drawn lam as label weight, too."""
    x, y = images(), torch.arange(6)
    for correct in (True, False):
        mix = Mix("guidedmixup", 6, correct_lam=correct, generator=seeded(5))
        mixed = mix.mixed(x, y)
        blended = mixed.mask * x + (1 - mixed.mask) * x[mixed.pairing.index]
        torch.testing.assert_close(mixed.x, blended)
        assert not torch.equal(mixed.pairing.index, ring())


@pytest.mark.usefixtures("unchecked_shapes")
def test_error_unknown_saliency():
    with pytest.raises(ValueError, match=r"unknown mixup.saliency 'spectrl'. Did you mean 'spectral'"):
        GuidedMixup(saliency="spectrl")


def test_error_an_alpha_that_nothing_reads():
    with pytest.raises(ValueError, match=r"mixup.alpha must stay 1.*saliency decides, got 0.2"):
        GuidedMixup(alpha=0.2)
