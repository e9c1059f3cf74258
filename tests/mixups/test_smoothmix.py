"""SmoothMix: the Gaussian of its paper, the width in lam, and the label that OpenMixup inverts."""

import math

import pytest
import torch

from samix.core.pairing import Pairing
from samix.mixups.smoothmix import SmoothMix, smoothmix_mask


@pytest.mark.parametrize("size", [(8, 8), (12, 20), (21, 9)])
def test_value_against_a_loop(size):
    lam = torch.tensor([0.0, 0.03, 0.25, 0.5, 0.77, 0.97, 1.0])
    masks = smoothmix_mask(size, lam, torch.Generator().manual_seed(4))
    draw = torch.Generator().manual_seed(4)
    rows = torch.randint(size[0], (7,), generator=draw).tolist()
    columns = torch.randint(size[1], (7,), generator=draw).tolist()
    for mask, value, row, column in zip(masks, lam.tolist(), rows, columns, strict=True):
        sigma = (1 - value) / 2 * size[0]  # of the height also where the picture is wider
        for h in range(size[0]):
            for w in range(size[1]):
                square = (h - row) ** 2 + (w - column) ** 2
                shown = math.exp(-square / (2 * sigma**2)) if sigma > 0 else 0.0
                assert float(mask[0, h, w]) == pytest.approx(1 - shown, abs=1e-6)


def test_value_the_partner_peaks_at_the_centre():
    masks = smoothmix_mask((16, 24), torch.full((200,), 0.4), torch.Generator().manual_seed(0))
    assert (masks.amin(dim=(1, 2, 3)) == 0).all()
    where = masks.flatten(1).argmin(dim=1)
    rows, columns = where // 24, where % 24
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, 15, 0, 23)


def test_value_draws_encode_the_width():
    pairing = SmoothMix(per_sample=True).draw(4000, torch.Generator().manual_seed(0))
    assert 0 <= pairing.lam.min() < 0.01 and 0.49 < pairing.lam.max() <= 0.5
    assert float(pairing.lam.mean()) == pytest.approx(0.25, abs=0.01)  # sigma = .375 on average
    assert (pairing.index != torch.arange(4000)).all()


def test_value_share_of_the_partner():
    """mean(G) lies in [.11, .73] and is about .43 on average."""
    lam = SmoothMix(per_sample=True).draw(3000, torch.Generator().manual_seed(0)).lam
    share = 1 - smoothmix_mask((32, 32), lam, torch.Generator().manual_seed(1)).mean(dim=(1, 2, 3))
    assert 0.1 < share.min() < 0.2 and 0.68 < share.max() < 0.75
    assert float(share.mean()) == pytest.approx(0.43, abs=0.02)


def test_value_the_weight_falls_where_the_partner_grows():
    """The trap O7: the label weight of the first image is 1 - mean(G)."""
    white, black = torch.ones(3, 12, 20), torch.zeros(3, 12, 20)
    x, index = torch.stack([white, black]), torch.tensor([1, 0])
    weights = []
    for lam in (1.0, 0.9, 0.5, 0.2, 0.0):
        draw = torch.Generator().manual_seed(6)
        mixed = SmoothMix()(x, Pairing(torch.tensor([lam]), index), generator=draw)
        weights.append(float(mixed.pairing.lam[0]))
        assert float(mixed.x[0].mean()) == pytest.approx(weights[-1], abs=1 / 240)
        assert float(mixed.x[1].mean()) == pytest.approx(1 - weights[-1], abs=1 / 240)
    assert weights[0] == 1 and all(a > b for a, b in zip(weights, weights[1:], strict=False))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_lam_one_keeps_its_image_beside_others(dtype):
    x = torch.randn(3, 3, 8, 20).to(dtype)
    mixed = SmoothMix()(x, Pairing(torch.tensor([1.0, 0.4, 1.0]), torch.tensor([1, 2, 0])))
    assert torch.equal(mixed.x[[0, 2]], x[[0, 2]]) and not torch.equal(mixed.x[1], x[1])
    assert (mixed.mask[[0, 2]] == 1).all() and mixed.mask.dtype == dtype
    assert mixed.x.isfinite().all() and mixed.pairing.lam[[0, 2]].tolist() == [1.0, 1.0]


def test_gradient_does_not_reach_lam():
    lam = torch.tensor([0.2, 1.0], requires_grad=True)
    assert not smoothmix_mask((8, 8), lam).requires_grad


def test_shape_one_mask_per_lam_and_a_batch_of_one():
    x = torch.rand(4, 3, 16, 12)
    assert SmoothMix()(x, Pairing(torch.tensor([0.5]), torch.arange(4).roll(1))).mask.shape == (1, 1, 16, 12)
    masks = SmoothMix()(x, Pairing(torch.full((4,), 0.5), torch.arange(4).roll(1))).mask
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 4
    alone = SmoothMix()(x[:1], Pairing(torch.tensor([0.5]), torch.tensor([0])))
    torch.testing.assert_close(alone.x, x[:1])


def test_shape_draw():
    assert SmoothMix().draw(5).lam.shape == (1,)
    pairing = SmoothMix(per_sample=True).draw(5)
    assert pairing.lam.shape == (5,) and pairing.index.shape == (5,)
    assert SmoothMix().draw(1).index.tolist() == [0]


def test_value_prob_leaves_pairs_as_they_are():
    lam = SmoothMix(prob=0.3, per_sample=True).draw(4000, torch.Generator().manual_seed(0)).lam
    assert float((lam == 1).float().mean()) == pytest.approx(0.7, abs=0.03)
    assert SmoothMix(prob=0.0).draw(3).lam.tolist() == [1.0]


def test_invariant_the_generator_alone_decides():
    policy, before = SmoothMix(prob=0.5, per_sample=True), torch.get_rng_state()
    x = torch.linspace(0, 1, 6 * 3 * 12 * 8).view(6, 3, 12, 8)

    def run(seed: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed)
        return policy(x, policy.draw(6, draw), generator=draw).x

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("low, high", [(0.0, 0.5), (0.4, 0.3), (0.25, 0.6)])
def test_error_widths(low, high):
    with pytest.raises(ValueError, match=rf"sigma_min <= sigma_max <= 0.5, got {low} and {high}"):
        SmoothMix(sigma_min=low, sigma_max=high)


def test_error_an_alpha_that_nothing_reads():
    with pytest.raises(ValueError, match=r"mixup.alpha must stay 1.*sigma_min and mixup.sigma_max.*got 0.2"):
        SmoothMix(alpha=0.2)
