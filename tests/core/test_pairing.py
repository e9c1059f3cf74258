"""Pairings: derangements, the distribution of lam, generators."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.pairing import MIN_ALPHA, Pairing, check_pairing, draw_derangement, draw_lam, draw_pairing


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(count=st.integers(2, 300), seed=st.integers(0, 2**31))
def test_invariant_derangement_has_no_fixed_points(count, seed):
    index = draw_derangement(count, generator(seed))
    assert sorted(index.tolist()) == list(range(count))
    assert (index != torch.arange(count)).all()


@given(count=st.integers(1, 60), seed=st.integers(0, 2**31))
def test_invariant_derangement_is_one_cycle(count, seed):
    index = draw_derangement(count, generator(seed))
    place, steps = int(index[0]), 1
    while place != 0:
        place, steps = int(index[place]), steps + 1
    assert steps == count


def test_value_small_derangements():
    assert draw_derangement(1).tolist() == [0]
    assert draw_derangement(2).tolist() == [1, 0]


def test_value_every_partner_is_as_likely():
    counts = torch.zeros(4, 4)
    draw = generator(0)
    for _ in range(3000):
        counts[torch.arange(4), draw_derangement(4, draw)] += 1
    expected = (1 - torch.eye(4)) * 1000
    assert (counts - expected).abs().max() < 150  # five standard deviations of a binomial count


@pytest.mark.parametrize("alpha", [0.2, 1.0, 2.0, 8.0])
def test_value_lam_has_the_moments_of_beta(alpha):
    lam = draw_lam(40_000, alpha, generator(1)).double()
    assert lam.min() >= 0 and lam.max() <= 1
    assert abs(lam.mean() - 0.5) < 0.01
    assert abs(lam.var() - 1 / (4 * (2 * alpha + 1))) < 0.003


@pytest.mark.parametrize("alpha", [MIN_ALPHA, 1e3])
def test_value_extreme_alpha_stays_finite(alpha):
    lam = draw_lam(2000, alpha, generator(2))
    assert lam.isfinite().all() and lam.min() >= 0 and lam.max() <= 1
    middle = float(((lam > 0.1) & (lam < 0.9)).float().mean())
    assert middle < 0.05 if alpha < 1 else middle == 1


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_error_alpha_must_be_positive(alpha):
    with pytest.raises(ValueError, match=f"alpha must be positive, got {alpha}"):
        draw_lam(3, alpha)


@pytest.mark.parametrize("batch", [1, 2, 3, 7])
@pytest.mark.parametrize("per_sample", [False, True])
def test_shape_draw_pairing(batch, per_sample):
    pairing = draw_pairing(batch, 1.0, per_sample=per_sample)
    assert pairing.lam.shape == (batch if per_sample else 1,)
    assert pairing.lam.dtype == torch.float32
    assert pairing.index.shape == (batch,) and pairing.index.dtype == torch.long


def test_value_same_seed_gives_the_same_pairing():
    first, again = (draw_pairing(9, 1.0, per_sample=True, generator=generator(5)) for _ in range(2))
    other = draw_pairing(9, 1.0, per_sample=True, generator=generator(6))
    assert torch.equal(first.lam, again.lam) and torch.equal(first.index, again.index)
    assert not torch.equal(first.lam, other.lam)


def test_value_a_generator_leaves_the_global_state_alone():
    before = torch.get_rng_state()
    draw_pairing(9, 1.0, per_sample=True, generator=generator(5))
    assert torch.equal(before, torch.get_rng_state())


def test_shape_as_image_weight():
    assert torch.rand(1).view(-1, 1, 1, 1).shape == (1, 1, 1, 1)
    assert torch.rand(5).view(-1, 1, 1, 1).shape == (5, 1, 1, 1)


def test_error_alpha_that_torch_cannot_draw_with():
    with pytest.raises(ValueError, match=r"alpha must be at least 0.01, .* got 0.001"):
        draw_lam(3, 1e-3)


@pytest.mark.parametrize(
    ("lam", "words"),
    [
        (torch.tensor([1.5]), r"lam must lie in \[0, 1\], got \[1.5\]"),
        (torch.tensor([float("nan")]), r"lam must lie in \[0, 1\]"),
        (torch.tensor([0.1, 0.2]), r"lam must be a tensor of shape \[1\] or \[3\]"),
        (0.5, r"lam must be a tensor of shape \[1\] or \[3\].*got 0.5"),
    ],
)
def test_error_pairings_that_would_extrapolate_or_broadcast(lam, words):
    with pytest.raises(ValueError, match=words):
        check_pairing(Pairing(lam, torch.tensor([1, 2, 0])), 3)


def test_error_partners_for_another_batch():
    with pytest.raises(ValueError, match="index must name the partner of each of 4 images"):
        check_pairing(Pairing(torch.tensor([0.5]), torch.tensor([1, 2, 0])), 4)
