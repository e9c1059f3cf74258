"""PuzzleMix as a policy: which blocks, what moves, what the labels weigh."""

import pytest
import torch
from torch import nn

from samix.core.mixed import blend
from samix.core.pairing import Pairing
from samix.methods.hints import Supplier
from samix.mixups.base import Hints
from samix.mixups.puzzlemix import PuzzleMix
from samix.mixups.puzzlemix.energy import Weights, block_saliency, puzzle_energy
from samix.mixups.puzzlemix.policy import transport_side
from samix.mixups.puzzlemix.solver import solve
from samix.mixups.puzzlemix.transport import move_blocks, transport_plan

SIZES = [(8, 8), (12, 20), (14, 28), (32, 32)]


def images(batch, size=(12, 20), dtype=torch.float32):
    return torch.rand(batch, 3, *size, generator=torch.Generator().manual_seed(3)).to(dtype)


def peaky_hints(x):
    """Pixels, and saliency with few peaks, so that blocks move."""
    noise = torch.randn(len(x), *x.shape[-2:], generator=torch.Generator().manual_seed(5))
    return Hints(pixels=x.detach().clamp(0, 1), saliency=(4 * noise).exp())


def ring(batch):
    return torch.arange(batch).roll(1)


def mix(policy, x, lam, seed=0):
    lam = lam if isinstance(lam, torch.Tensor) else torch.tensor([lam])
    return policy(x, Pairing(lam, ring(len(x))), peaky_hints(x), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("transport", [True, False])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_shape(batch, size, transport):
    for seed in range(4):
        mixed = mix(PuzzleMix(transport=transport), images(batch, size), 0.4, seed)
        assert mixed.x.shape == (batch, 3, *size) and mixed.mask.shape == (batch, 1, *size)
        assert mixed.pairing.lam.shape == (batch,) and mixed.pairing.lam.dtype == torch.float32
        assert set(mixed.mask.unique().tolist()) <= {0.0, 0.5, 1.0}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shape_dtype(dtype):
    mixed = mix(PuzzleMix(), images(4, dtype=dtype), torch.linspace(0.1, 0.9, 4))
    assert mixed.x.dtype == mixed.mask.dtype == dtype
    torch.testing.assert_close(mixed.pairing.lam, mixed.mask.float().mean(dim=(1, 2, 3)))


def test_value_the_steps_put_together():
    """8 x 8 blocks of 4 px: mask of the solver, both images moved, blended."""
    x, lam, index = images(6, (32, 32)), torch.linspace(0.2, 0.8, 6), ring(6)
    pixels, saliency = peaky_hints(x)[:2]
    mixed = mix(PuzzleMix(min_exponent=3, max_exponent=3), x, lam)
    shares = solve(puzzle_energy(pixels, saliency, index, lam, 8, Weights()))
    mask = shares.repeat_interleave(4, dim=1).repeat_interleave(4, dim=2)[:, None]
    assert torch.equal(mixed.mask, mask)
    maps = block_saliency(saliency, (8, 8))
    first = move_blocks(x, transport_plan(maps, shares), (8, 8))
    second = move_blocks(x[index], transport_plan(maps[index], 1 - shares), (8, 8))
    assert not torch.equal(first, x) and not torch.equal(second, x[index])
    assert torch.equal(mixed.x, blend(first, second, mask))


def test_value_without_transport_the_images_stay():
    x = images(5)
    mixed = mix(PuzzleMix(transport=False), x, 0.4)
    assert mixed.sources is None
    assert torch.equal(mixed.x, blend(x, x[ring(5)], mixed.mask))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_invariant_lam_one_keeps_the_first_image(dtype):
    """Per pair: the others are mixed as ever."""
    x, lam = images(4, (32, 32), dtype), torch.tensor([1.0, 0.3, 1.0, 0.6])
    for seed in range(6):
        mixed = mix(PuzzleMix(), x, lam, seed)
        assert torch.equal(mixed.x[[0, 2]], x[[0, 2]]) and (mixed.pairing.lam[[0, 2]] == 1).all()
        assert not torch.equal(mixed.x[1], x[1])
        assert torch.equal(mix(PuzzleMix(), x, 1.0, seed).x, x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lam", [0.0, 0.2, 0.5, 0.9])
def test_invariant_white_with_black_shows_lam(size, lam):
    """No place that shows is ever left empty, so the mean is the label weight."""
    x = torch.stack([torch.ones(3, *size), torch.zeros(3, *size)])
    for seed in range(4):
        mixed = mix(PuzzleMix(), x, lam, seed)
        first, second = mixed.pairing.lam.tolist()
        assert float(mixed.x[0].mean()) == pytest.approx(first, abs=1e-5)
        assert float(mixed.x[1].mean()) == pytest.approx(1 - second, abs=1e-5)


def test_invariant_dense_targets_move_with_the_images():
    x = images(6, (32, 32))
    for seed in range(5):
        mixed = mix(PuzzleMix(), x, torch.linspace(0.2, 0.8, 6), seed)
        torch.testing.assert_close(mixed.dense(x), mixed.x)
        classes = (x[:, 0] * 5).long()
        first, second = mixed.sources(classes[:, None])
        assert torch.equal(mixed.dense(classes), torch.where(mixed.mask >= 0.5, first, second)[:, 0])


def test_value_lam_sets_the_mean_of_the_masks():
    x = images(32, (16, 16))
    means = [float(mix(PuzzleMix(eta=1.0), x, lam).pairing.lam.mean()) for lam in (0.1, 0.5, 0.9)]
    assert means[0] < 0.3 < means[1] < 0.7 < means[2]


def test_value_the_mask_shows_what_is_salient():
    """Saliency in the left half of one image and the right half of the other."""
    x = torch.full((2, 3, 16, 16), 0.5)
    saliency = torch.zeros(2, 16, 16)
    saliency[0, :, :8], saliency[1, :, 8:] = 1, 1
    for seed in range(4):
        pairing, draw = (
            Pairing(torch.tensor([0.5]), torch.tensor([1, 0])),
            torch.Generator().manual_seed(seed),
        )
        mask = PuzzleMix(eta=0.01).mask(x, pairing, Hints(x, saliency), draw)
        assert (mask[0, 0, :, :4] == 1).all() and (mask[0, 0, :, -4:] == 0).all()
        assert torch.equal(mask[1], 1 - mask[0])


def test_value_block_counts_are_uniform():
    policy, draw = PuzzleMix(), torch.Generator().manual_seed(0)
    counts = [policy.draw_blocks((32, 64), draw) for _ in range(800)]
    assert {count: counts.count(count) > 160 for count in set(counts)} == dict.fromkeys((2, 4, 8, 16), True)
    assert {policy.draw_blocks((12, 20), draw) for _ in range(50)} == {2, 4}
    assert {policy.draw_blocks((10, 30), draw) for _ in range(9)} == {2}


def test_value_sides_of_moved_blocks():
    """4 px or a smaller block of the mask on CIFAR, whole blocks on larger pictures, never lone pixels."""
    policy = PuzzleMix()
    assert [policy.moved_sides((32, 32), n) for n in (2, 4, 8, 16)] == [(4, 4), (4, 4), (4, 4), (2, 2)]
    assert [policy.moved_sides((224, 224), n) for n in (2, 16)] == [(112, 112), (14, 14)]
    assert policy.moved_sides((12, 20), 4) == (3, 5) and policy.moved_sides((28, 28), 2) == (2, 2)
    assert PuzzleMix(transport_size=8).moved_sides((224, 224), 4) == (8, 8)
    assert [transport_side(7, 1), transport_side(1, 4), transport_side(11, 4)] == [1, 1, 11]


def test_invariant_a_seed_fixes_the_result():
    x, before = images(5, (32, 32)), torch.get_rng_state()
    runs = [mix(PuzzleMix(), x, 0.4, seed).x for seed in (1, 1, 2, 3, 4)]
    assert torch.equal(runs[0], runs[1]) and any(not torch.equal(runs[0], run) for run in runs[2:])
    assert torch.equal(before, torch.get_rng_state())


def test_invariant_nothing_is_changed_in_place():
    x, pairing = images(4, (32, 32)), Pairing(torch.tensor([1.0, 0.2, 0.5, 0.8]), ring(4))
    hints = peaky_hints(x)
    given = (x, *pairing, hints.pixels, hints.saliency)
    copies = [tensor.clone() for tensor in given]
    for seed in range(4):
        mixed = PuzzleMix()(x, pairing, hints, torch.Generator().manual_seed(seed))
        assert mixed.x.data_ptr() != x.data_ptr()
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(given, copies, strict=True))


def test_gradient_goes_through_the_moved_images_only():
    x = images(4, (32, 32)).requires_grad_()
    mixed = mix(PuzzleMix(), x, 0.4)
    assert not mixed.mask.requires_grad and not mixed.pairing.lam.requires_grad
    (gradient,) = torch.autograd.grad(mixed.x.sum(), x)
    with torch.no_grad():  # each pixel counts by the mask at the places where it went
        numbers = torch.arange(4 * 32 * 32).view(4, 1, 32, 32)
        first, second = mixed.sources(numbers)
        expected = torch.zeros(4 * 32 * 32).index_add(0, first.flatten(), mixed.mask.flatten())
        expected = expected.index_add(0, second.flatten(), 1 - mixed.mask.flatten()).view(4, 1, 32, 32)
    torch.testing.assert_close(gradient, expected.expand(4, 3, 32, 32))


def test_invariant_the_network_that_gives_saliency_stays_as_it_was():
    """No weight gradients, no new batch statistics."""
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
    x, y = images(6, (16, 16)), torch.arange(6) % 5
    network(x)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    hints = Supplier(network)(PuzzleMix.needs, x, y)
    mixed = PuzzleMix()(x, Pairing(torch.tensor([0.4]), ring(6)), hints)
    assert mixed.x.isfinite().all()
    assert all(parameter.grad is None for parameter in network.parameters()) and network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


@pytest.mark.parametrize("saliency", [0.0, 1e-30])
def test_value_saliency_that_vanishes_is_no_harm(saliency):
    x = images(3, (16, 16))
    mixed = PuzzleMix()(x, Pairing(torch.tensor([0.4]), ring(3)), Hints(x, torch.full((3, 16, 16), saliency)))
    assert mixed.x.isfinite().all() and mixed.mask.isfinite().all()


@pytest.mark.parametrize("size", [(15, 20), (9, 9)])
def test_error_pictures_that_no_grid_fits(size):
    with pytest.raises(ValueError, match=rf"none of these divides both {size[0]} and {size[1]} pixels"):
        mix(PuzzleMix(), images(2, size), 0.4)


@pytest.mark.parametrize("missing", ["pixels", "saliency"])
@pytest.mark.parametrize("transport", [True, False])
def test_error_missing_hints(missing, transport):
    x = images(2)
    with pytest.raises(ValueError, match=f"PuzzleMix needs {missing}"):
        PuzzleMix(transport=transport)(
            x, Pairing(torch.tensor([0.4]), ring(2)), peaky_hints(x)._replace(**{missing: None})
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "mixup.alpha must be positive, got 0.0"),
        ({"min_exponent": 0}, "mixup.min_exponent must lie between 1 and mixup.max_exponent, got 0 and 4"),
        ({"min_exponent": 3, "max_exponent": 2}, "got 3 and 2"),
        ({"beta": 0.0}, "mixup.beta must be positive, got 0.0"),
        ({"gamma": 1.0}, r"mixup.gamma must lie in \[0, 1\), got 1.0"),
        ({"gamma": -0.1}, r"mixup.gamma must lie in \[0, 1\), got -0.1"),
        ({"eta": -0.1}, "mixup.eta must not be negative, got -0.1"),
        ({"transport_epsilon": 0.0}, "mixup.transport_epsilon must be positive, got 0.0"),
        ({"transport_size": -1}, "mixup.transport_size must not be negative, got -1"),
    ],
)
def test_error_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        PuzzleMix(**settings)
