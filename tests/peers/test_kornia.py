"""What kornia's own tests ask of `RandomMixUpV2` and `RandomCutMixV2`, in samix's words.

Differs: lam weighs the first picture, not the partner; a batch without pictures is refused; CutMix pastes one
box (`num_mix` is another library's word for calling it several times).
"""

import math

import pytest
import torch
from torch.autograd import gradcheck

from samix import CutMix, Mix, MixUp
from samix.core.pairing import Pairing

PAIRED = ["mixup", "cutmix", "fmix", "gridmix", "smoothmix", "resizemix", "mixup+cutmix"]


def black_and_white() -> tuple[torch.Tensor, torch.Tensor]:
    """A white picture of class 1 and a black one of class 0."""
    return torch.stack([torch.ones(1, 3, 4), torch.zeros(1, 3, 4)]), torch.tensor([1, 0])


def test_value_policies_print_what_they_are():
    assert str(Mix("mixup")) == "Mix(MixUp())" and str(Mix("cutmix")) == "Mix(CutMix())"
    assert str(Mix("cutmix", 10, prob=0.5, mode="elem")) == "Mix(CutMix(), classes=10, prob=0.5, mode='elem')"


@pytest.mark.parametrize("mode", ["elem", "batch"])
def test_value_mixup_shows_lam_of_the_first_picture(mode):
    x, y = black_and_white()
    images, y_a, y_b, lam = Mix("mixup", mode=mode).pairs(x, y)
    lam = lam.expand(2)
    torch.testing.assert_close(images[0], lam[0].expand(1, 3, 4))
    torch.testing.assert_close(images[1], (1 - lam[1]).expand(1, 3, 4))
    assert torch.equal(y_a, y) and torch.equal(y_b, y.flip(0))


@pytest.mark.parametrize("mode", ["elem", "batch"])
def test_value_cutmix_shows_the_share_that_its_label_says(mode):
    x, y = black_and_white()
    for _ in range(20):
        images, y_a, y_b, lam = Mix("cutmix", mode=mode).pairs(x, y)
        lam = lam.expand(2)
        assert set(images.unique().tolist()) <= {0.0, 1.0}
        torch.testing.assert_close(images.mean(dim=(1, 2, 3)), torch.stack([lam[0], 1 - lam[1]]))
        assert torch.equal(y_a, y) and torch.equal(y_b, y.flip(0))


@pytest.mark.parametrize("policy", PAIRED)
def test_value_with_probability_zero_nothing_changes_and_lam_is_one(policy):
    x, y = torch.rand(8, 3, 12, 20), torch.arange(8)
    images, y_a, _, lam = Mix(policy, prob=0.0).pairs(x, y)
    assert torch.equal(images, x) and torch.equal(y_a, y) and (lam == 1).all()


@pytest.mark.parametrize("policy", ["mixup", "cutmix"])
def test_value_one_lam_for_the_batch_or_one_for_each(policy):
    x, y = torch.rand(8, 3, 32, 32), torch.arange(8)
    assert Mix(policy, mode="batch").pairs(x, y)[3].shape == (1,)
    assert len(Mix(policy, mode="elem").pairs(x, y)[3].unique()) > 4


@pytest.mark.parametrize("size", [(200, 200), (3, 4), (1, 1)])
@pytest.mark.parametrize("prob", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("policy", [MixUp(), CutMix(), CutMix(minmax=(0.0, 1.0)), CutMix(minmax=(0.3, 0.6))])
def test_invariant_every_allowed_setting_mixes(policy, batch, prob, size):
    x, y = torch.rand(batch, 3, *size), torch.zeros(batch).long()
    for mode in ("batch", "elem", "pair"):
        images, _, _, lam = Mix(policy, prob=prob, mode=mode).pairs(x, y)
        assert images.shape == x.shape and images.isfinite().all() and ((lam >= 0) & (lam <= 1)).all()
        assert prob or torch.equal(images, x)


@pytest.mark.parametrize("policy", ["mixup", "cutmix"])
def test_value_a_half_of_the_pictures_is_left_alone(policy):
    x, y = torch.rand(400, 1, 8, 8), torch.zeros(400).long()
    lam = Mix(policy, mode="elem", prob=0.5, alpha=50.0).pairs(x, y)[3]
    assert 150 < int((lam == 1).sum()) < 250


@pytest.mark.parametrize(
    "settings",
    [{"minmax": pair} for pair in ((-1.0, 1.0), (0.0, 2.0), (0.6, 0.3), (0.0, math.nan))]
    + [{"alpha": value} for value in (0.0, -1.0, math.nan, math.inf)],
)
def test_error_settings_that_kornia_refuses(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=rf"mixup\.{name} must"):
        CutMix(**settings)


@pytest.mark.parametrize("policy", [MixUp(), CutMix()])
def test_gradient_equals_differences(policy):
    x = torch.rand(3, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    pairing = Pairing(torch.tensor([0.3, 0.6, 0.8]), torch.tensor([1, 2, 0]))

    def mixed(images: torch.Tensor) -> torch.Tensor:
        return policy(images, pairing, generator=torch.Generator().manual_seed(1)).x

    assert gradcheck(mixed, x)
