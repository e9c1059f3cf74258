"""What holds for every mixup of the table, so that a new line in `MIXUPS` is tested from the start."""

import pytest
import torch

import samix.mixups
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.mixups import MIXUPS, Policy, TokenMix

SIZES = [(8, 8), (12, 20), (32, 32)]


@pytest.fixture(params=MIXUPS.values(), ids=MIXUPS.keys())
def policy(request) -> Policy:
    return request.param()


@pytest.fixture
def pairs(policy) -> None:
    """For what holds only where a mixed image is two images under one mask."""
    if not policy.masks_pairs:
        pytest.skip("not two images under one mask")


@pytest.fixture
def mix(policy, hints_for):
    """The policy with the hints that a method would supply; latent ones mix images as if they were maps."""

    def call(x: torch.Tensor, pairing: Pairing, generator: torch.Generator | None = None) -> Mixed:
        return policy.picture(x, pairing, hints_for(x), generator)

    return call


def images(batch: int, size: tuple[int, int] = (12, 20), dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(batch, 3, *size, generator=torch.Generator().manual_seed(3)).to(dtype)


def ring(batch: int) -> torch.Tensor:
    return torch.arange(batch).roll(1)


def lams(batch: int, per_sample: bool) -> torch.Tensor:
    return torch.linspace(0.1, 0.9, batch) if per_sample else torch.tensor([0.4])


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 3, 7])
@pytest.mark.parametrize("size", SIZES)
def test_shape(mix, policy, batch, size, per_sample):
    x, lam = images(batch, size), lams(batch, per_sample)
    mixed = mix(x, Pairing(lam, ring(batch)))
    assert mixed.x.shape == x.shape and mixed.x.isfinite().all()
    assert mixed.mask.shape[1:] == (1, *size) and len(mixed.mask) in (1, batch)
    assert mixed.pairing.lam.shape in {(1,), (batch,)}
    assert not policy.masks_pairs or torch.equal(mixed.pairing.index, ring(batch))


def test_shape_per_sample_lam_gives_a_mask_per_sample(pairs, mix):
    mixed = mix(images(5), Pairing(lams(5, True), ring(5)))
    assert len(mixed.mask) == 5 and mixed.pairing.lam.shape == (5,)
    assert len(mixed.pairing.lam.unique()) > 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_the_images_keep_their_dtype(mix, dtype):
    x = images(4, dtype=dtype)
    mixed = mix(x, Pairing(lams(4, True), ring(4)))
    assert mixed.x.dtype == dtype and mixed.mask.dtype == dtype
    assert mixed.pairing.lam.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_lam_one_keeps_the_first_image(mix, dtype, per_sample):
    x = images(4, dtype=dtype)
    mixed = mix(x, Pairing(torch.ones(4 if per_sample else 1), ring(4)))
    assert torch.equal(mixed.x, x)
    assert (mixed.pairing.lam == 1).all()


def test_invariant_the_mask_lies_in_the_unit_interval(mix):
    for lam in torch.linspace(0, 1, 9):
        mask = mix(images(3), Pairing(lam[None], ring(3))).mask
        assert mask.min() >= 0 and mask.max() <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_the_label_weight_is_the_mean_of_the_mask(pairs, mix, policy, dtype):
    if isinstance(policy, TokenMix):
        pytest.skip("weighs labels by attention")
    mixed = mix(images(6, dtype=dtype), Pairing(lams(6, True), ring(6)))
    for mask, weight in zip(mixed.mask, mixed.pairing.lam, strict=True):
        assert float(weight) == pytest.approx(float(mask.double().mean()), abs=1e-6)


def test_invariant_the_image_is_the_blend_of_the_pair(pairs, mix):
    x, index = images(5), ring(5)
    mixed = mix(x, Pairing(lams(5, True), index))
    first, second = (x, x[index]) if mixed.sources is None else mixed.sources(x)
    for i in range(5):
        expected = mixed.mask[i] * first[i] + (1 - mixed.mask[i]) * second[i]
        torch.testing.assert_close(mixed.x[i], expected)


@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_soft_labels_sum_to_one(mix, per_sample):
    mixed = mix(images(6), Pairing(lams(6, per_sample), ring(6)))
    for smoothing in (0.0, 0.1):
        rows = mixed.soft_labels(torch.tensor([0, 1, 2, 2, 4, 3]), 5, smoothing)
        torch.testing.assert_close(rows.sum(dim=1), torch.ones(6))
        assert rows.min() >= 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lam", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_invariant_white_with_black_shows_lam(pairs, mix, size, lam):
    white, black = torch.ones(3, *size), torch.zeros(3, *size)
    mixed = mix(torch.stack([white, black]), Pairing(torch.tensor([lam]), torch.tensor([1, 0])))
    first, second = mixed.pairing.lam.expand(2).tolist()
    tolerance = 1 / (size[0] * size[1])
    assert float(mixed.x[0].mean()) == pytest.approx(first, abs=tolerance)
    assert float(mixed.x[1].mean()) == pytest.approx(1 - second, abs=tolerance)


def test_invariant_nothing_is_changed_in_place(mix):
    x, pairing = images(5), Pairing(lams(5, True), ring(5))
    copies = x.clone(), pairing.lam.clone(), pairing.index.clone()
    mixed = mix(x, pairing)
    assert mixed.x.data_ptr() != x.data_ptr()
    for tensor, copy in zip((x, pairing.lam, pairing.index), copies, strict=True):
        assert tensor._version == 0 and torch.equal(tensor, copy)


def test_invariant_a_seed_fixes_the_result(mix, policy):
    x = images(5)

    def run(seed: int) -> torch.Tensor:
        draw = torch.Generator().manual_seed(seed)
        return mix(x, policy.draw(5, draw), draw).x

    before = torch.get_rng_state()
    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state()), "the generator was passed but not used"


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_a_bad_picture_spoils_only_its_own_pairs(mix, bad, per_sample):
    """Pictures that share nothing with it stay finite, and the labels of all."""
    x = images(5)
    x[2] = bad
    mixed = mix(x, Pairing(lams(5, per_sample), ring(5)), torch.Generator().manual_seed(0))
    parents, shares = mixed.family()
    assert shares.isfinite().all() and mixed.soft_labels(torch.arange(5), 5).isfinite().all()
    touched = ((parents == 2) & (shares > 0)).any(dim=1) | (torch.arange(5) == 2) | (ring(5) == 2)
    untouched = ~touched if mixed.parents is None else ~((parents == 2) & (shares > 0)).any(dim=1)
    assert mixed.x[untouched].isfinite().all()


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_shape_any_number_of_channels(mix, channels):
    x = torch.rand(4, channels, 12, 20)
    mixed = mix(x, Pairing(lams(4, True), ring(4)))
    assert mixed.x.shape == x.shape and mixed.x.isfinite().all()


def test_gradient_reaches_both_images_by_their_weights(pairs, mix):
    x = images(3).requires_grad_()
    index = ring(3)
    mixed = mix(x, Pairing(lams(3, True), index))
    if mixed.sources is not None:
        pytest.skip("moves the images first")
    (grad,) = torch.autograd.grad(mixed.x.sum(), x)
    expected = torch.zeros_like(x)
    for i in range(3):
        expected[i] += mixed.mask[i].detach()
        expected[index[i]] += 1 - mixed.mask[i].detach()
    torch.testing.assert_close(grad, expected)


@pytest.mark.parametrize("batch", [1, 2, 3, 7])
def test_shape_draw(policy, batch):
    assert type(policy)(per_sample=False).draw(batch).lam.shape == (1,)
    per_sample = type(policy)(per_sample=True).draw(batch)
    assert per_sample.lam.shape == (batch,) and per_sample.index.shape == (batch,)


@pytest.mark.parametrize("name", MIXUPS)
@pytest.mark.parametrize("alpha", [0.0, -0.5])
def test_error_alpha_must_be_positive(name, alpha):
    with pytest.raises(ValueError, match=rf"mixup.alpha must be positive, got {alpha}"):
        MIXUPS[name](alpha=alpha)


def test_invariant_every_exported_name_exists():
    assert [name for name in samix.mixups.__all__ if not hasattr(samix.mixups, name)] == []
    assert {policy.__name__ for policy in MIXUPS.values()} <= set(samix.mixups.__all__)


def test_error_settings_cannot_change(policy):
    with pytest.raises(AttributeError):
        policy.alpha = 3.0
