"""PuzzleMix's energy: its terms against loops, and the numbers of the official code."""

import math

import pytest
import torch

from samix.mixups.puzzlemix.energy import (
    Weights,
    block_saliency,
    energy_of,
    largest_divisor,
    log_prior,
    puzzle_energy,
)

CIFAR = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])


def problem(size=(12, 20), batch=3, seed=0):
    """Pixels, saliency, partners and lams."""
    draw = torch.Generator().manual_seed(seed)
    pixels = torch.rand(batch, 3, *size, generator=draw)
    saliency = torch.rand(batch, *size, generator=draw) ** 4
    return pixels, saliency, torch.arange(batch).roll(1), torch.rand(batch, generator=draw)


def loop_saliency(saliency, blocks):
    """Means of blocks, scaled to sum 1, one picture."""
    height, width = saliency.shape[0] // blocks, saliency.shape[1] // blocks
    means = torch.zeros(blocks, blocks)
    for r in range(blocks):
        for c in range(blocks):
            means[r, c] = saliency[r * height : (r + 1) * height, c * width : (c + 1) * width].mean()
    return means / means.sum()


def loop_jump(above, below, pool):
    """Mean distance in colour between the last pooled row of one block and the first of the next."""
    jumps = []
    for c in range(0, above.shape[2], pool[1]):
        upper = above[:, -pool[0] :, c : c + pool[1]].mean(dim=(1, 2))
        lower = below[:, : pool[0], c : c + pool[1]].mean(dim=(1, 2))
        jumps.append(float((upper - lower).abs().mean()))
    return sum(jumps) / len(jumps)


def loop_energy(pair, saliencies, lam, labels, weights):
    """E of labels in {0, 1} from its meaning: lost saliency, unequal neighbours, jumps in colour, prior."""
    blocks = len(labels)
    height, width = pair[0].shape[1] // blocks, pair[0].shape[2] // blocks
    pool = max(d for d in (1, 2, 3, 4) if height % d == 0), max(d for d in (1, 2, 3, 4) if width % d == 0)
    beta = weights.beta / 16 / blocks
    cells = [[image[:, r * height : (r + 1) * height] for r in range(blocks)] for image in pair]
    total = 0.0
    for r in range(blocks):
        for c in range(blocks):
            source = 0 if labels[r][c] else 1
            place = slice(c * width, (c + 1) * width)
            total += float(saliencies[1 - source][r, c])
            total -= weights.eta / blocks**2 * 2 * math.log(lam if labels[r][c] else 1 - lam)
            here = cells[source][r][:, :, place]
            if r + 1 < blocks:
                there = cells[0 if labels[r + 1][c] else 1][r + 1][:, :, place]
                total += beta * (labels[r][c] != labels[r + 1][c])
                total += beta * weights.gamma * loop_jump(here, there, pool)
            if c + 1 < blocks:
                beside = slice((c + 1) * width, (c + 2) * width)
                there = cells[0 if labels[r][c + 1] else 1][r][:, :, beside]
                total += beta * (labels[r][c] != labels[r][c + 1])
                total += beta * weights.gamma * loop_jump(here.mT, there.mT, pool[::-1])
    return total


@pytest.mark.parametrize(
    ("size", "blocks"), [((8, 8), 2), ((8, 8), 8), ((12, 20), 2), ((12, 20), 4), ((28, 14), 2)]
)
def test_value_labels_of_zero_and_one_cost_what_the_energy_means(size, blocks):
    """The split into block costs and kappa is exact up to a constant: differences of energies agree."""
    pixels, saliency, index, lam = problem(size)
    weights = Weights(beta=1.7, gamma=0.6, eta=0.3)
    energy = puzzle_energy(pixels, saliency, index, lam, blocks, weights)
    draw = torch.Generator().manual_seed(1)
    labelings = (torch.rand(6, blocks, blocks, generator=draw) > 0.5).float()
    for i in range(3):
        j = int(index[i])
        maps = loop_saliency(saliency[i], blocks), loop_saliency(saliency[j], blocks)
        ours, meant = [], []
        for labels in labelings:
            ours.append(float(energy_of(energy, labels.expand(3, -1, -1))[i]))
            meant.append(
                loop_energy((pixels[i], pixels[j]), maps, float(lam[i]), labels.int().tolist(), weights)
            )
        for value, target in zip(ours[1:], meant[1:], strict=True):
            assert value - ours[0] == pytest.approx(target - meant[0], abs=1e-5)


def test_value_half_shares():
    """At 1/2 a block pays the mean of both costs and the prior's middle; neighbours pay squares."""
    pixels, saliency, index, lam = problem()
    energy = puzzle_energy(pixels, saliency, index, lam, 4, Weights())
    prior = -0.2 / 16 * torch.stack([(1 - lam) ** 2, 2 * lam * (1 - lam), lam**2]).log()[..., None, None]
    bare = energy.unary - prior
    torch.testing.assert_close(bare[1], (bare[0] + bare[2]) / 2)
    shares = torch.zeros(3, 4, 4)
    shares[:, 1, 2] = 0.5
    around = energy.down[:, 0, 2] + energy.down[:, 1, 2] + energy.right[:, 1, 1] + energy.right[:, 1, 2]
    step = energy.unary[1, :, 1, 2] - energy.unary[0, :, 1, 2] + around / 4
    torch.testing.assert_close(energy_of(energy, shares) - energy_of(energy, 0 * shares), step)


@pytest.mark.parametrize("lam", [0.0, 1e-6, 0.3, 0.9999, 1.0])
@pytest.mark.parametrize("blocks", [2, 4, 8, 16])
def test_invariant_costs_are_convex_and_couplings_positive(blocks, lam):
    """What the exact cut and the descent rely on, also for the sharpest colours and the most extreme lam."""
    _, saliency, index, _ = problem((32, 32))
    pixels = (torch.rand(3, 3, 8, 8) > 0.5).float().repeat_interleave(4, 2).repeat_interleave(4, 3)
    energy = puzzle_energy(pixels, saliency, index, torch.tensor([lam]), blocks, Weights())
    low, middle, high = energy.unary.double()
    assert (high - 2 * middle + low > 0).all() and energy.unary.isfinite().all()
    least = 1.2 / 16 / blocks * 0.5
    assert min(energy.down.min(), energy.right.min()) >= least * 0.9999


def test_value_prior():
    rows = log_prior(torch.tensor([0.5, 0.8])).exp()
    torch.testing.assert_close(rows, torch.tensor([[0.25, 0.04], [0.5, 0.32], [0.25, 0.64]]))
    assert float(log_prior(torch.tensor([1.0]))[0]) == pytest.approx(math.log(1e-8), abs=0.01)


def test_value_one_lam_serves_the_batch():
    pixels, saliency, index, _ = problem()
    one = puzzle_energy(pixels, saliency, index, torch.tensor([0.3]), 2, Weights())
    each = puzzle_energy(pixels, saliency, index, torch.full((3,), 0.3), 2, Weights())
    for part, same in zip(one, each, strict=True):
        assert torch.equal(part, same)


def test_value_swapping_the_images_mirrors_the_energy():
    pixels, saliency, _, _ = problem(batch=2)
    index, shares = torch.tensor([1, 0]), (torch.rand(1, 4, 4) * 3).floor() / 2
    energy = puzzle_energy(pixels, saliency, index, torch.tensor([0.3, 0.7]), 4, Weights())
    first, second = energy_of(energy, torch.cat([shares, 1 - shares]))
    assert float(first) == pytest.approx(float(second), rel=1e-5)


def test_value_a_map_of_zeros_has_no_saliency():
    maps = torch.stack([torch.zeros(8, 8), torch.full((8, 8), 1e-20)])
    none, faint = block_saliency(maps, (2, 2))
    assert (none == 0).all() and torch.allclose(faint, torch.tensor(0.25))


def test_value_largest_divisor():
    cases = [(1, 4), (2, 4), (3, 4), (7, 4), (14, 4), (16, 4), (6, 4), (56, 56)]
    assert [largest_divisor(*case) for case in cases] == [1, 2, 3, 1, 2, 4, 3, 56]


def test_shape_half_precision_pixels():
    pixels, saliency, index, lam = problem()
    energy = puzzle_energy(pixels.bfloat16(), saliency, index, lam, 4, Weights())
    assert all(part.dtype == torch.float32 for part in energy)


@pytest.mark.parametrize("run", ["cifarcfg", "b4_notrans"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_golden_terms(golden, seed, run):
    """Costs and couplings of the official code, before its prior and its rounding to integers."""
    record, key = golden("g_puzzlemix_32"), f"seed{seed}/{run}"
    mean, std = (values.view(3, 1, 1) for values in CIFAR)
    lam, beta = (float(value) for value in record[f"{key}/alpha_beta_eta_nlabels"][:2])
    blocks = record[f"{key}/graphcut_mask"].shape[-1]
    energy = puzzle_energy(
        record["img"] * std + mean,
        record["saliency"],
        record[f"{key}/index"],
        torch.tensor([lam]),
        blocks,
        Weights(eta=0.0),
    )
    close = {"rtol": 0, "atol": 2e-7}
    torch.testing.assert_close(energy.unary[2], record[f"{key}/unary_arg1"], **close)
    torch.testing.assert_close(energy.unary[0], record[f"{key}/unary_arg2"], **close)
    torch.testing.assert_close(energy.down, record[f"{key}/pw_x"] + beta, **close)
    torch.testing.assert_close(energy.right, record[f"{key}/pw_y"] + beta, **close)
