"""AugMix: chains of its code against a loop over pictures, their draws, and the way back to x's scale."""

import math

import pytest
import torch

from samix.core.pairing import Pairing
from samix.mixups.augmix import AugMix
from samix.mixups.augmix.operations import OPERATIONS, posterise, solarise
from samix.mixups.augmix.policy import Chains, affine_fit, apply_chains, draw_chains
from samix.mixups.base import Hints

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
IDENTITY = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def pictures(batch: int, size: tuple[int, int] = (12, 20)) -> torch.Tensor:
    """Pixels in [0, 1] on 8-bit steps, so that nothing is lost by quantising them."""
    return torch.randint(256, (batch, 3, *size)) / 255


def normalised(pixels: torch.Tensor, stats=IMAGENET) -> torch.Tensor:
    mean, std = (torch.tensor(values).to(pixels).view(1, 3, 1, 1) for values in stats)
    return (pixels - mean) / std


def clamped_pixels(x: torch.Tensor, stats=IMAGENET) -> torch.Tensor:
    mean, std = (torch.tensor(values).to(x).view(1, 3, 1, 1) for values in stats)
    return (x * std + mean).clamp(0, 1)


def loop_mixture(pixels: torch.Tensor, chains: Chains) -> torch.Tensor:
    """sum_c w_c chain_c(pixels), picture by picture, chain by chain, operation by operation."""
    mixtures = []
    for i in range(len(pixels)):
        total = torch.zeros_like(pixels[i])
        for c in range(chains.share.shape[1]):
            picture = (pixels[i : i + 1] * 255).round().to(torch.uint8)
            for number, level in zip(chains.operation[i, c].tolist(), chains.level[i, c], strict=True):
                if number < 0:
                    break
                picture = OPERATIONS[number](picture, level[None])
            total += float(chains.share[i, c]) * picture[0] / 255
        mixtures.append(total)
    return torch.stack(mixtures)


def seeded(seed: int = 4) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("width", "depth_max"), [(3, 3), (1, 1), (2, 4)])
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (21, 9)])
def test_value_chains_against_a_loop(size, width, depth_max):
    pixels, chains = pictures(11, size), draw_chains(11, width=width, depth_max=depth_max, severity=9.0)
    torch.testing.assert_close(apply_chains(pixels, chains), loop_mixture(pixels, chains))


@pytest.mark.parametrize("stats", [IMAGENET, IDENTITY], ids=["imagenet", "identity"])
@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("batch", [1, 7])
def test_value_against_the_formula(batch, per_sample, stats):
    """lam x + (1 - lam) normalise(mixture), with the normalisation that the policy is not told."""
    pixels = pictures(batch)
    x = normalised(pixels, stats)
    lam = torch.linspace(0, 0.9, batch) if per_sample else torch.tensor([0.3])
    index = torch.arange(batch).roll(1)
    mixed = AugMix()(x, Pairing(lam, index), Hints(pixels=clamped_pixels(x, stats)), seeded())
    mixture = loop_mixture(pixels, draw_chains(batch, generator=seeded()))
    for i in range(batch):
        weight = float(lam[i % len(lam)])
        expected = weight * x[i] + (1 - weight) * normalised(mixture[i : i + 1], stats)[0]
        torch.testing.assert_close(mixed.x[i], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("per_sample", [False, True])
def test_value_labels_are_not_mixed(per_sample):
    x, lam = pictures(5), torch.full((5 if per_sample else 1,), 0.2)
    mixed = AugMix()(x, Pairing(lam, torch.arange(5).roll(1)), Hints(pixels=x))
    assert torch.equal(mixed.pairing.lam, torch.ones_like(lam))
    assert torch.equal(mixed.mask, torch.ones(len(lam), 1, 12, 20))
    y = torch.tensor([0, 1, 2, 3, 1])
    assert torch.equal(mixed.soft_labels(y, 4), torch.nn.functional.one_hot(y, 4).float())


def test_value_the_partner_does_not_matter():
    x, lam = pictures(4), torch.tensor([0.2])
    first, second = (
        AugMix()(x, Pairing(lam, index), Hints(pixels=x), seeded()).x
        for index in (torch.tensor([1, 2, 3, 0]), torch.tensor([3, 0, 1, 2]))
    )
    assert torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_lam_one_leaves_the_picture_untouched(dtype, per_sample):
    x = normalised(pictures(4)).to(dtype)
    lam = torch.tensor([1.0, 0.4, 1.0, 0.0]) if per_sample else torch.ones(1)
    hints = Hints(pixels=clamped_pixels(x))
    mixed = AugMix(severity=10.0)(x, Pairing(lam, torch.arange(4).roll(1)), hints)
    assert mixed.x.dtype == mixed.mask.dtype == dtype and mixed.pairing.lam.dtype == torch.float32
    kept = lam.expand(4) == 1
    assert torch.equal(mixed.x[kept], x[kept])
    for view, image in zip(mixed.x[~kept], x[~kept], strict=True):
        assert not torch.equal(view, image)


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("size", [(8, 8), (8, 30), (33, 17)])
def test_shape_and_range(batch, size):
    x = pictures(batch, size)
    policy = AugMix(severity=10.0)
    view = policy(x, policy.draw(batch), Hints(pixels=x)).x
    assert view.shape == x.shape
    assert view.min() >= -1e-5 and view.max() <= 1 + 1e-5


def test_value_pixels_are_rounded_to_eight_bits():
    chains = draw_chains(6)._replace(operation=torch.full((6, 3, 3), -1))  # every chain is empty
    pixels = torch.rand(6, 3, 8, 8)
    expected = (pixels.double() * 255).round() / 255
    torch.testing.assert_close(apply_chains(pixels, chains), expected.float(), atol=1e-6, rtol=0)


def test_value_operations_of_a_chain_run_in_their_order():
    order = [OPERATIONS.index(operation) for operation in (solarise, posterise)]
    pixels, share, level = pictures(1), torch.ones(1, 1), torch.full((1, 1, 2), 3.0)
    shades = (pixels * 255).round().to(torch.uint8)
    for numbers, expected in (
        (order, posterise(solarise(shades, level[0, 0, :1]), level[0, 0, :1])),
        (order[::-1], solarise(posterise(shades, level[0, 0, :1]), level[0, 0, :1])),
    ):
        chains = Chains(share, torch.tensor(numbers).view(1, 1, 2), level)
        torch.testing.assert_close(apply_chains(pixels, chains), expected / 255)


def test_gradient_reaches_x_through_its_clean_part_only():
    pixels = pictures(3)
    x = normalised(pixels).requires_grad_()
    lam = torch.tensor([0.1, 0.5, 0.9])
    mixed = AugMix()(x, Pairing(lam, torch.tensor([1, 2, 0])), Hints(pixels=pixels))
    (grad,) = torch.autograd.grad(mixed.x.sum(), x)
    torch.testing.assert_close(grad, lam.view(3, 1, 1, 1).expand_as(x))


def test_invariant_nothing_is_changed_in_place():
    pixels = pictures(5)
    x, pairing = normalised(pixels), AugMix().draw(5)
    tensors = (x, pixels, *pairing)
    copies = [tensor.clone() for tensor in tensors]
    versions = [tensor._version for tensor in tensors]
    AugMix()(x, pairing, Hints(pixels=pixels))
    for tensor, copy, version in zip(tensors, copies, versions, strict=True):
        assert torch.equal(tensor, copy) and tensor._version == version


def test_invariant_a_seed_fixes_the_result_and_spares_the_global_generator():
    x, policy = pictures(5), AugMix(prob=0.9)

    def run(seed: int) -> torch.Tensor:
        draw = seeded(seed)
        return policy(x, policy.draw(5, draw), Hints(pixels=x), draw).x

    before = torch.get_rng_state()
    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state())


def test_value_draws_of_operations():
    chains = draw_chains(6000, severity=3.0, generator=seeded())
    depth = (chains.operation >= 0).sum(dim=2)
    used = chains.operation[chains.operation >= 0]
    for length in (1, 2, 3):
        assert float((depth == length).double().mean()) == pytest.approx(1 / 3, abs=0.02)
    share = used.bincount() / len(used)
    assert len(share) == 9
    torch.testing.assert_close(share, torch.full((9,), 1 / 9), atol=0.01, rtol=0)
    ended = chains.operation < 0
    assert (ended[..., :-1] <= ended[..., 1:]).all() and not ended[..., 0].any()


@pytest.mark.parametrize("severity", [1.0, 3.0])
def test_value_draws_of_levels(severity):
    level = draw_chains(6000, severity=severity, generator=seeded()).level
    size = level.abs()
    assert size.min() >= 0.1 and size.max() <= severity
    assert float(size.mean()) == pytest.approx((0.1 + severity) / 2, abs=0.02 * severity)
    assert float((level > 0).double().mean()) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_value_draws_of_weights(alpha):
    """Dirichlet(a, a, a) has variance (2/9) / (3 a + 1), Beta(a, a) has 1 / (8 a + 4)."""
    share = draw_chains(20000, alpha=alpha, generator=seeded()).share
    torch.testing.assert_close(share.sum(dim=1), torch.ones(20000))
    torch.testing.assert_close(share.mean(dim=0), torch.full((3,), 1 / 3), atol=0.01, rtol=0)
    assert float(share.var()) == pytest.approx(2 / 9 / (3 * alpha + 1), rel=0.05)
    lam = AugMix(alpha=alpha).draw(20000, seeded()).lam
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.01)
    assert float(lam.var()) == pytest.approx(1 / (8 * alpha + 4), rel=0.05)


def test_value_every_picture_has_its_own_lam_unless_told_otherwise():
    assert AugMix().draw(6).lam.shape == (6,)
    assert AugMix(per_sample=False).draw(6).lam.shape == (1,)
    assert (AugMix(prob=0.0).draw(6).lam == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("stats", [IMAGENET, IDENTITY], ids=["imagenet", "identity"])
@pytest.mark.parametrize("size", [(8, 8), (150, 131)])
def test_value_affine_fit_recovers_the_normalisation(size, stats, dtype):
    x = normalised(pictures(2, size).to(dtype), stats)
    scale, shift = affine_fit(clamped_pixels(x, stats), x)
    mean, std = (torch.tensor(values, dtype=dtype) for values in stats)
    torch.testing.assert_close(scale.flatten(), 1 / std, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(shift.flatten(), -mean / std, rtol=1e-6, atol=1e-6)


def test_value_affine_fit_in_bfloat16_is_as_good_as_its_input():
    x = normalised(pictures(4, (32, 32))).bfloat16()
    scale, shift = affine_fit(clamped_pixels(x), x)
    mean, std = (torch.tensor(values) for values in IMAGENET)
    assert scale.dtype == torch.float32
    torch.testing.assert_close(scale.flatten(), 1 / std, rtol=0.01, atol=0)
    torch.testing.assert_close(shift.flatten(), -mean / std, rtol=0.01, atol=0)


def test_value_affine_fit_is_not_misled_by_clamping():
    """Images beyond the range of pixels: half of these are clamped."""
    x = torch.randn(4, 3, 16, 16) * 3
    pixels = clamped_pixels(x)
    assert float(((pixels == 0) | (pixels == 1)).double().mean()) > 0.3
    scale, shift = affine_fit(pixels, x)
    mean, std = (torch.tensor(values) for values in IMAGENET)
    torch.testing.assert_close(scale.flatten(), 1 / std, rtol=1e-4, atol=0)
    torch.testing.assert_close(shift.flatten(), -mean / std, rtol=1e-4, atol=0)


def test_value_affine_fit_of_black_and_white():
    """Nothing lies inside (0, 1), or only one shade that rounding moved there."""
    x = normalised((torch.rand(2, 3, 16, 16) < 0.1).float())
    for pixels in (clamped_pixels(x), clamped_pixels(x).clamp(min=1e-8)):
        scale, shift = affine_fit(pixels, x)
        mean, std = (torch.tensor(values) for values in IMAGENET)
        torch.testing.assert_close(scale.flatten(), 1 / std, rtol=1e-5, atol=0)
        torch.testing.assert_close(shift.flatten(), -mean / std, rtol=1e-5, atol=0)


@pytest.mark.parametrize("shade", [0.0, 0.3, 1.0])
def test_value_affine_fit_of_one_shade(shade):
    pixels = torch.full((3, 3, 16, 24), shade)
    x = normalised(pixels)
    scale, shift = affine_fit(pixels, x)
    assert (scale == 1).all()
    torch.testing.assert_close(pixels + shift, x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, r"mixup.alpha must be positive, got 0.0"),
        ({"severity": 0.05}, r"mixup.severity must lie in \[0.1, 10\], got 0.05"),
        ({"severity": 11.0}, r"mixup.severity must lie in \[0.1, 10\], got 11.0"),
        ({"severity": math.nan}, r"mixup.severity must lie in \[0.1, 10\], got nan"),
        ({"width": 0}, r"mixup.width must be at least 1, got 0"),
        ({"depth_max": 0}, r"mixup.depth_max must be at least 1, got 0"),
        ({"jsd_weight": -1.0}, r"mixup.jsd_weight must not be negative, got -1.0"),
        ({"prob": 2.0}, r"mixup.prob must lie in \[0, 1\], got 2.0"),
    ],
)
def test_error_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        AugMix(**settings)


def test_error_pixels_are_needed():
    with pytest.raises(ValueError, match="AugMix needs pixels"):
        AugMix()(pictures(2), AugMix().draw(2))
