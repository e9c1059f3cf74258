"""Mixup: lam at every pixel."""

import pytest
import torch

from samix.core.pairing import Pairing
from samix.mixups.mixup import MixUp, constant_mask


@pytest.mark.parametrize("count", [1, 3])
def test_value_the_mask_is_lam_everywhere(count):
    lam = torch.rand(count)
    mask = constant_mask((4, 6), lam)
    assert mask.shape == (count, 1, 4, 6)
    assert torch.equal(mask, lam[:, None, None, None] * torch.ones(count, 1, 4, 6))


def test_value_against_a_loop():
    x, index, lam = torch.randn(3, 3, 4, 6), torch.tensor([2, 0, 1]), torch.tensor([0.1, 0.5, 0.8])
    mixed = MixUp()(x, Pairing(lam, index))
    for i in range(3):
        torch.testing.assert_close(mixed.x[i], lam[i] * x[i] + (1 - lam[i]) * x[index[i]])
    torch.testing.assert_close(mixed.pairing.lam, lam)


def test_value_the_label_weight_is_lam_to_the_last_bit():
    lam = torch.rand(50)
    mixed = MixUp()(torch.rand(50, 1, 7, 9), Pairing(lam, torch.arange(50).roll(1)))
    assert torch.equal(mixed.pairing.lam, lam)


def test_value_lam_zero_shows_the_partner():
    x, index = torch.randn(3, 3, 4, 6), torch.tensor([2, 0, 1])
    assert torch.equal(MixUp()(x, Pairing(torch.zeros(1), index)).x, x[index])


def test_invariant_swapping_roles_and_weights_changes_nothing():
    x, pairing = torch.randn(4, 3, 4, 6), Pairing(torch.tensor([0.3]), torch.tensor([1, 0, 3, 2]))
    swapped = MixUp()(x[pairing.index], Pairing(1 - pairing.lam, pairing.index))
    torch.testing.assert_close(swapped.x, MixUp()(x, pairing).x)


def test_value_bfloat16_images_keep_the_weight_they_were_mixed_with():
    mixed = MixUp()(torch.rand(2, 3, 8, 8).bfloat16(), Pairing(torch.tensor([0.3]), torch.tensor([1, 0])))
    assert float(mixed.pairing.lam) == float(torch.tensor(0.3).bfloat16())
