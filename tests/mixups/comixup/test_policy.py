"""Co-Mixup as a policy: its costs and draws, the mixed images and their labels."""

import itertools

import pytest
import torch

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.mixups import Hints
from samix.mixups.comixup import CoMixup
from samix.mixups.comixup.policy import (
    compatibility,
    draw_start,
    draw_wanted,
    pooled_saliency,
    salient_positions,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(batch: int, size: tuple[int, int] = (12, 20), dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(batch, 3, *size, generator=seeded(3)).to(dtype)


def blobs(batch: int, size: tuple[int, int] = (12, 20)) -> torch.Tensor:
    """Saliency with one bright spot per image."""
    rows, columns = torch.linspace(0, 1, size[0])[:, None], torch.linspace(0, 1, size[1])
    places = torch.rand(batch, 2, 1, 1, generator=seeded(5))
    return torch.exp(-((rows - places[:, 0]) ** 2 + (columns - places[:, 1]) ** 2) / 0.05) + 0.02


def mix(policy: CoMixup, x: torch.Tensor, lam: torch.Tensor | None = None, seed: int = 0) -> Mixed:
    lam = torch.tensor([0.5]) if lam is None else lam
    pairing = Pairing(lam, torch.arange(len(x)).roll(1))
    return policy(x, pairing, Hints(saliency=blobs(len(x), x.shape[2:])), seeded(seed))


# --- costs and draws -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(8, 8), (12, 20), (16, 16)])
def test_value_pooled_saliency_against_a_loop(size):
    saliency = torch.rand(3, *size)
    pooled = pooled_saliency(saliency, 4)
    h, w = size[0] // 4, size[1] // 4
    for i, r, c in itertools.product(range(3), range(4), range(4)):
        part = saliency[i, r * h : (r + 1) * h, c * w : (c + 1) * w].sum() / saliency[i].sum()
        assert float(pooled[i, r, c]) == pytest.approx(float(part), rel=1e-5)


@pytest.mark.parametrize("size", [(8, 8), (9, 12), (20, 13), (5, 30)])
def test_value_salient_position_against_a_loop(size):
    saliency = torch.rand(4, *size)
    high, wide = min(8, size[0]), min(8, size[1])
    for i, place in enumerate(salient_positions(saliency).tolist()):
        windows = {
            (r, c): float(saliency[i, r : r + high, c : c + wide].mean())
            for r in range(size[0] - high + 1)
            for c in range(size[1] - wide + 1)
        }
        assert tuple(place) == max(windows, key=lambda at: windows[at])


def test_value_compatibility_against_a_loop():
    positions = torch.randint(20, (2, 4, 2)).float()
    real = torch.tensor([[1.0, 1, 1, 1], [1, 1, 1, 0]])
    found = compatibility(positions, real, 0.1)
    for g, count in ((0, 4), (1, 3)):
        place = positions[g].tolist()
        distance = [[abs(a[0] - b[0]) + abs(a[1] - b[1]) for b in place[:count]] for a in place[:count]]
        total = sum(map(sum, distance))
        for i, j in itertools.product(range(count), repeat=2):
            expected = 0.9 * (i == j) + 0.1 * count * distance[i][j] / total
            assert float(found[g, i, j]) == pytest.approx(expected, abs=1e-6)
    assert compatibility(torch.zeros(1, 3, 2), torch.ones(1, 3), 0.1).isfinite().all()


def test_value_what_is_wanted_is_dirichlet():
    """Mean 1/m and variance (m - 1) / (m^2 (m alpha + 1)); 0 where the last part ends."""
    wanted = draw_wanted(20_003, 5, 2.0, seeded())
    assert wanted.shape == (4001, 5) and wanted[-1, 3:].tolist() == [0, 0]
    torch.testing.assert_close(wanted.sum(dim=1), torch.ones(4001))
    whole = wanted[:-1]
    assert float(whole.mean(dim=0).sub(0.2).abs().max()) < 0.01
    assert float(whole.var()) == pytest.approx(4 / (25 * 11), rel=0.05)


def test_value_the_start_is_a_uniform_choice_among_real_images():
    start = draw_start(torch.tensor([6, 4]), 6, 3000, seeded())
    assert torch.equal(start.sum(dim=3)[0], torch.ones(6, 3000))
    assert start[1, 4:].sum() == 0 and start[1, ..., 4:].sum() == 0
    assert float(start[0].mean(dim=(0, 1)).sub(1 / 6).abs().max()) < 0.01
    assert float(start[1, :4].mean(dim=(0, 1))[:4].sub(1 / 4).abs().max()) < 0.01


# --- the policy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(8, 8), (12, 20), (9, 13)])
def test_value_images_labels_and_masks_against_a_loop(size):
    x, policy = images(7, size), CoMixup(part=4)
    mixed = mix(policy, x)
    z = policy.find_shares(blobs(7, size), seeded())  # [B, P, 4, 4]
    assert mixed.parents is not None
    rows = mixed.soft_labels(torch.arange(7), 7)
    for o in range(7):
        first, expected, share = o // 4 * 4, torch.zeros(3, *size), torch.zeros(7)
        for r, c, k in itertools.product(range(size[0]), range(size[1]), range(4)):
            weight = float(z[o, k, r * 4 // size[0], c * 4 // size[1]])
            if weight:
                expected[:, r, c] += weight * x[first + k, :, r, c]
                share[first + k] += weight / (size[0] * size[1])
            if first + k == o:
                assert float(mixed.mask[o, 0, r, c]) == weight
        torch.testing.assert_close(mixed.x[o], expected)
        torch.testing.assert_close(rows[o], share)
        assert float(mixed.pairing.lam[o]) == pytest.approx(float(share[o]), abs=1e-6)
        share[o] = -1
        assert float(share[mixed.pairing.index[o]]) == pytest.approx(float(share.max()), abs=1e-6)


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 21])
def test_shape(batch, per_sample):
    x = images(batch, (8, 8))
    lam = torch.linspace(0.1, 0.9, batch) if per_sample else torch.tensor([0.4])
    mixed = mix(CoMixup(), x, lam)
    width = min(batch, 20)
    assert mixed.x.shape == x.shape and mixed.mask.shape == (batch, 1, 8, 8)
    assert mixed.parents.index.shape == mixed.parents.share.shape == (batch, width)
    assert mixed.pairing.lam.shape == mixed.pairing.index.shape == (batch,)
    torch.testing.assert_close(mixed.parents.share.sum(dim=1), torch.ones(batch))
    assert ((mixed.pairing.index != torch.arange(batch)) | (batch == 1)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_the_images_keep_their_dtype(dtype):
    x = images(6, dtype=dtype)
    mixed = mix(CoMixup(), x)
    assert mixed.x.dtype == mixed.mask.dtype == dtype
    assert mixed.pairing.lam.dtype == mixed.parents.share.dtype == torch.float32
    torch.testing.assert_close(mixed.x, mix(CoMixup(), x.float()).x.to(dtype), rtol=0.01, atol=0.01)


def test_value_the_parts_of_a_batch_do_not_mix_and_a_single_image_stays():
    x = images(9)
    mixed = mix(CoMixup(part=4), x)
    rows = mixed.soft_labels(torch.arange(9), 9)
    assert rows[:4, 4:].sum() == 0 and rows[4:8, :4].sum() == 0 and rows[4:8, 8].sum() == 0
    assert (rows[:8].max(dim=1).values < 1).any()
    assert torch.equal(mixed.x[8], x[8]) and float(rows[8, 8]) == 1 and float(mixed.pairing.lam[8]) == 1


def test_value_blocks_show_the_image_that_is_salient_there():
    """Two images, salient on the left and on the right: outputs that show both cut along the middle."""
    x, saliency = images(2, (16, 16)), torch.full((2, 16, 16), 1e-3)
    saliency[0, :, :8] = saliency[1, :, 8:] = 1.0
    mixed = CoMixup()(
        x, Pairing(torch.tensor([0.5]), torch.tensor([1, 0])), Hints(saliency=saliency), seeded()
    )
    cut = torch.cat([x[0, :, :, :8], x[1, :, :, 8:]], dim=2)
    assert any(torch.equal(output, cut) for output in mixed.x)


def test_value_no_image_is_used_much_more_than_others():
    """Without the cost of over-use the images that win their blocks fill every output."""
    saliency = torch.rand(10, 8, 8, generator=seeded(1))
    greedy = CoMixup(gamma=0.0).find_shares(saliency, seeded()).mean(dim=(2, 3)).sum(dim=0)
    fair = CoMixup().find_shares(saliency, seeded()).mean(dim=(2, 3)).sum(dim=0)
    assert fair.max() < 2 < 3 < greedy.max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_invariant_lam_one_keeps_the_image(dtype):
    x, lam = images(6, (9, 13), dtype), torch.tensor([0.5, 1.0, 0.5, 1.0, 0.5, 0.5])
    mixed = mix(CoMixup(), x, lam)
    assert torch.equal(mixed.x[lam == 1], x[lam == 1]) and not torch.equal(mixed.x, x)
    assert (mixed.pairing.lam[lam == 1] == 1).all() and (mixed.mask[lam == 1] == 1).all()
    assert torch.equal(mixed.soft_labels(torch.arange(6), 6)[lam == 1], torch.eye(6)[lam == 1])
    untouched = mix(CoMixup(), x, torch.ones(1))
    assert torch.equal(untouched.x, x) and (untouched.pairing.lam == 1).all()
    assert torch.equal(untouched.pairing.index, torch.arange(6).roll(1))


def test_invariant_the_given_lam_does_not_matter_but_the_seed_does():
    x = images(6)
    first = mix(CoMixup(), x, torch.tensor([0.1])).x
    state = torch.get_rng_state()
    assert torch.equal(first, mix(CoMixup(), x, torch.linspace(0.2, 0.9, 6)).x)
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(first, mix(CoMixup(), x, seed=1).x)


def test_invariant_mixed_precision_around_it_does_not_matter():
    x = images(6)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = mix(CoMixup(), x)
    assert torch.equal(mixed.x, mix(CoMixup(), x).x)


def test_gradient_reaches_the_parents_by_their_shares():
    x = images(5, (8, 8)).requires_grad_()
    mixed = mix(CoMixup(), x)
    assert not mixed.mask.requires_grad and not mixed.parents.share.requires_grad
    (gradient,) = torch.autograd.grad(mixed.x[2].sum(), x)
    share = gradient.mean(dim=(1, 2, 3))
    torch.testing.assert_close(share, mixed.soft_labels(torch.arange(5), 5)[2])


def test_value_images_without_saliency_are_mixed_all_the_same():
    x = images(4, (8, 8))
    hints = Hints(saliency=torch.zeros(4, 8, 8))
    mixed = CoMixup()(x, Pairing(torch.tensor([0.5]), torch.tensor([1, 2, 3, 0])), hints, seeded())
    assert mixed.x.isfinite().all()
    torch.testing.assert_close(mixed.parents.share.sum(dim=1), torch.ones(4))


def test_error_labels_of_more_than_two_parents():
    with pytest.raises(ValueError, match="more than two parents"):
        mix(CoMixup(), images(4)).labels(torch.arange(4))


def test_error_saliency_is_needed():
    with pytest.raises(ValueError, match="CoMixup needs saliency"):
        CoMixup()(images(2), Pairing(torch.tensor([0.5]), torch.tensor([1, 0])))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"part": 1}, "mixup.part must be at least 2, got 1."),
        ({"blocks": 0}, "mixup.blocks must be at least 1, got 0."),
        ({"rounds": 0}, "mixup.rounds must be at least 1, got 0."),
        ({"beta": -1.0}, "mixup.beta must not be negative, got -1.0."),
        ({"gamma": -1.0}, "mixup.gamma must not be negative, got -1.0."),
        ({"eta": -1.0}, "mixup.eta must not be negative, got -1.0."),
        ({"tau": -1.0}, "mixup.tau must not be negative, got -1.0."),
        ({"omega": 1.5}, r"mixup.omega must lie in \[0, 1\], got 1.5."),
        ({"alpha": 0.0}, "mixup.alpha must be positive, got 0.0."),
    ],
)
def test_error_bad_settings(setting, message):
    with pytest.raises(ValueError, match=message):
        CoMixup(**setting)
