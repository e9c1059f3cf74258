"""PuzzleMix's solvers: the exact cut against enumeration, the batched descent against the exact cut."""

import sys
from itertools import product

import pytest
import torch
from puzzle_cut import graph_cut
from torch.nn import functional as F

from samix.mixups.puzzlemix.energy import Energy, Weights, energy_of, puzzle_energy
from samix.mixups.puzzlemix.solver import descend, make_steps, solve

CIFAR = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2023, 0.1994, 0.2010])


@pytest.fixture
def cut():
    """The exact solver, where PyMaxflow is installed."""
    pytest.importorskip("maxflow")
    return graph_cut


def random_energy(shape, batch=8, coupling=0.5, seed=0) -> Energy:
    """Convex costs and positive couplings without the structure of pictures."""
    draw = torch.Generator().manual_seed(seed)
    rows, columns = shape
    low, high = torch.randn(2, batch, rows, columns, generator=draw)
    middle = (low + high) / 2 - torch.rand(batch, rows, columns, generator=draw) / 4
    down = coupling * torch.rand(batch, rows - 1, columns, generator=draw) + 0.01
    right = coupling * torch.rand(batch, rows, columns - 1, generator=draw) + 0.01
    return Energy(torch.stack([low, middle, high]), down, right)


def picture_energy(blocks, pairs=64, seed=0) -> Energy:
    """Of smooth pictures with smooth and noisy saliency."""
    draw = torch.Generator().manual_seed(seed)

    def field(channels, cells):
        return F.interpolate(torch.randn(pairs, channels, cells, cells, generator=draw), 32, mode="bilinear")

    pixels = (0.5 + 0.2 * field(3, 4) + 0.1 * field(3, 32)).clamp(0, 1)
    saliency = (field(1, 5) + 0.5 * field(1, 32)).exp()[:, 0]
    lam = torch.rand(pairs, generator=draw)
    return puzzle_energy(pixels, saliency, torch.arange(pairs).roll(1), lam, blocks, Weights())


def loop_minimum(energy, picture):
    """The lowest energy of one picture over all labelings, with the energy written out block by block."""
    unary, down, right = (part.double() for part in energy)
    rows, columns = unary.shape[2:]
    places = list(product(range(rows), range(columns)))
    cost = {(r, c): unary[:, picture, r, c].tolist() for r, c in places}
    couplings = [((r, c), (r + 1, c), float(down[picture, r, c])) for r, c in places if r + 1 < rows]
    couplings += [((r, c), (r, c + 1), float(right[picture, r, c])) for r, c in places if c + 1 < columns]
    lowest, best = float("inf"), None
    for choice in product(range(3), repeat=len(places)):
        label = dict(zip(places, choice, strict=True))
        total = sum(cost[place][label[place]] for place in places)
        total += sum(w * (label[a] - label[b]) ** 2 / 4 for a, b, w in couplings)
        if total < lowest:
            lowest, best = total, choice
    return lowest, best


def test_value_two_by_two_blocks_are_exact():
    for energy in (random_energy((2, 2)), picture_energy(2, pairs=8)):
        shares = solve(energy)
        for i in range(8):
            lowest, best = loop_minimum(energy, i)
            assert (2 * shares[i]).flatten().tolist() == list(best)
            assert float(energy_of(energy, shares)[i]) == pytest.approx(lowest, abs=1e-5)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
def test_value_the_cut_is_the_global_minimum(cut, shape):
    for coupling in (0.2, 2.0):
        energy = random_energy(shape, batch=6, coupling=coupling)
        shares = cut(energy)
        for i in range(6):
            lowest, _ = loop_minimum(energy, i)
            assert float(energy_of(energy, shares)[i]) == pytest.approx(lowest, abs=1e-5)


@pytest.mark.parametrize("blocks", [2, 4, 8, 16])
def test_value_within_one_percent_of_the_cut(cut, blocks):
    energy = picture_energy(blocks)
    exact, ours = energy_of(energy, cut(energy)), energy_of(energy, solve(energy))
    gap = (ours - exact) / exact
    assert gap.min() >= -1e-5, "the cut is not the minimum"
    assert gap.mean() < 0.01
    assert gap.mean() < (1e-6 if blocks == 2 else 0.008)


@pytest.mark.parametrize("coupling", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (16, 16)])
def test_invariant_icm_never_raises_the_energy(shape, coupling):
    energy = Energy(*(part.double() for part in random_energy(shape, coupling=coupling)))
    steps, draw = make_steps(energy), torch.Generator().manual_seed(1)
    labels = (torch.rand(*shape, 8, generator=draw, dtype=torch.float64) * 3).floor()
    before = energy_of(energy, labels.movedim(-1, 0) / 2)
    for _ in range(8):
        labels = descend(steps, labels, rounds=1, discrete=True)
        after = energy_of(energy, labels.movedim(-1, 0) / 2)
        assert (after <= before + 1e-12).all()
        before = after
    assert set(labels.unique().tolist()) <= {0.0, 1.0, 2.0}
    assert torch.equal(descend(steps, labels, rounds=1, discrete=True), labels), "eight rounds should settle"


def test_value_icm_takes_the_best_label_given_the_neighbours():
    """Black blocks do not touch each other: one half round sets each to the best of three by trial."""
    energy = random_energy((4, 4), batch=5)
    start = (torch.rand(5, 4, 4) * 3).floor()
    black = (torch.arange(4)[:, None] + torch.arange(4)) % 2 == 0
    moved = descend(make_steps(energy), start.movedim(0, -1), rounds=1, discrete=True).movedim(-1, 0)
    for r, c in black.nonzero().tolist():
        trials = []
        for label in range(3):
            trial = start.clone()
            trial[:, r, c] = label
            trials.append(energy_of(energy, trial / 2))
        assert torch.equal(moved[:, r, c].long(), torch.stack(trials).argmin(dim=0))


def test_value_relaxation_reaches_the_minimum_over_the_interval():
    """With steps of 1 and with over-relaxation alike, to where no single share can improve."""
    steps = make_steps(random_energy((6, 6), batch=4))
    half = torch.ones_like(steps.constant)
    plain, over = (descend(steps, half, rounds=200, step=step) for step in (1.0, 1.5))
    torch.testing.assert_close(plain, over, rtol=0, atol=1e-4)
    torch.testing.assert_close(descend(steps, over, rounds=1), over, rtol=0, atol=1e-5)
    assert over.min() == 0 and over.max() == 2 and (over != over.round()).any()


@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_value_extreme_weights(blocks):
    """Without coupling every block takes its own best share; with a strong one all blocks agree."""
    energy = picture_energy(blocks, pairs=6)
    loose = solve(Energy(energy.unary, energy.down * 1e-6, energy.right * 1e-6))
    assert torch.equal(loose, energy.unary.argmin(dim=0) / 2)
    tight = solve(Energy(energy.unary, energy.down * 1e3, energy.right * 1e3))
    assert (tight.flatten(1).std(dim=1) == 0).all()


def test_value_pictures_do_not_touch_each_other():
    energy = picture_energy(8, pairs=5)
    for i, shares in enumerate(solve(energy)):
        alone = Energy(energy.unary[:, i : i + 1], energy.down[i : i + 1], energy.right[i : i + 1])
        assert torch.equal(solve(alone)[0], shares)


def test_invariant_shares_are_three(cut):
    for solver in (solve, cut):
        assert set(solver(picture_energy(8, pairs=20)).unique().tolist()) == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("blocks", [2, 8])
def test_invariant_autocast_changes_nothing(blocks):
    plain = solve(picture_energy(blocks, pairs=40))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(solve(picture_energy(blocks, pairs=40)), plain)


def test_error_without_pymaxflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "maxflow", None)
    with pytest.raises(ImportError, match="pip install PyMaxflow"):
        graph_cut(random_energy((2, 2)))


@pytest.mark.parametrize("run", ["cifarcfg", "b4_notrans"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_golden_masks(golden, cut, seed, run):
    """The official swaps never beat the cut; where they reach its energy, they end in the same mask."""
    record, key = golden("g_puzzlemix_32"), f"seed{seed}/{run}"
    mean, std = (values.view(3, 1, 1) for values in CIFAR)
    lam, official = (
        record[f"{key}/alpha_beta_eta_nlabels"][:1].float(),
        record[f"{key}/graphcut_mask"].float(),
    )
    pixels, index = record["img"] * std + mean, record[f"{key}/index"]
    energy = puzzle_energy(pixels, record["saliency"], index, lam, official.shape[-1], Weights())
    exact, theirs, ours = (energy_of(energy, shares) for shares in (cut(energy), official, solve(energy)))
    assert (theirs >= exact * 0.99999).all() and (theirs <= exact * 1.005).all()
    same = theirs <= exact * 1.00001
    assert same.sum() >= 2 and torch.equal(cut(energy)[same], official[same])
    assert (ours <= exact * 1.01).all()
