"""Co-Mixup: the discrete problem of its paper against loops and enumeration, then the policy."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.mixups import Hints
from samix.mixups.comixup import solver
from samix.mixups.comixup.policy import (
    CoMixup,
    compatibility,
    draw_start,
    draw_wanted,
    pooled_saliency,
    salient_positions,
)
from samix.mixups.comixup.solver import (
    Problem,
    best_output,
    differences,
    duplicate_price,
    energy,
    icm,
    make_grid,
    objective,
    soft_labels,
    solve,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def neighbours(side: int) -> list[tuple[int, int]]:
    """All pairs of 4-neighbours of a grid whose blocks are counted row by row."""
    right = [(r * side + c, r * side + c + 1) for r in range(side) for c in range(side - 1)]
    below = [(r * side + c, (r + 1) * side + c) for r in range(side - 1) for c in range(side)]
    return right + below


def problem(parts: int = 1, images: int = 3, side: int = 2, seed: int = 0) -> Problem:
    n = side * side
    unary = -torch.rand(parts, n, images, generator=seeded(seed)) / n * 2
    near = 0.9 * torch.eye(images) + 0.1 * torch.rand(parts, images, images, generator=seeded(seed + 1))
    real = torch.ones(parts, images, dtype=torch.bool)
    return Problem(unary, near, real, make_grid(side), 0.32 / n, 1 / n, 0.83 * n)


def random_outputs(parts: int, images: int, n: int, seed: int = 0) -> torch.Tensor:
    return draw_start(torch.full((parts,), images), images, n, seeded(seed))


def loop_energy(unary: torch.Tensor, pairwise: torch.Tensor, labels: list[int]) -> float:
    side = int(len(labels) ** 0.5)
    total = sum(float(unary[b, label]) for b, label in enumerate(labels))
    return total + sum(float(pairwise[labels[b], labels[c]]) for b, c in neighbours(side))


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


# --- the subproblem of one output ------------------------------------------------------------------------


@pytest.mark.parametrize("side", [1, 2, 3, 4])
def test_value_the_grid(side):
    grid = make_grid(side)
    adjacent = torch.zeros(side * side, side * side)
    for b, c in neighbours(side):
        adjacent[b, c] = adjacent[c, b] = 1
        assert grid.black[b] != grid.black[c]
    assert torch.equal(grid.adjacent, adjacent)


def test_value_energy_against_a_loop():
    unary, labels = torch.rand(5, 9, 4), torch.randint(4, (5, 9))
    pairwise = torch.rand(5, 4, 4)
    pairwise = pairwise + pairwise.mT
    values = energy(unary, pairwise, make_grid(3), labels)
    for i in range(5):
        assert float(values[i]) == pytest.approx(loop_energy(unary[i], pairwise[i], labels[i].tolist()))


def test_invariant_a_sweep_never_raises_the_energy():
    unary, labels = torch.rand(50, 16, 7), torch.randint(7, (50, 16))
    pairwise = 0.3 * (1 - torch.eye(7)).expand(50, 7, 7)
    grid, before = make_grid(4), energy(unary, pairwise, make_grid(4), labels)
    first = before
    for _ in range(6):
        labels = icm(unary, pairwise, grid, labels, sweeps=1)
        after = energy(unary, pairwise, grid, labels)
        assert (after <= before + 1e-5).all()
        before = after
    assert (before < first).all()


def test_value_icm_ends_where_no_single_block_wants_to_change():
    unary, pairwise = torch.rand(1, 9, 4), 0.2 * (1 - torch.eye(4))[None]
    labels = icm(unary, pairwise, make_grid(3), torch.randint(4, (1, 9)), sweeps=20)[0].tolist()
    best = loop_energy(unary[0], pairwise[0], labels)
    for block, label in itertools.product(range(9), range(4)):
        changed = [*labels[:block], label, *labels[block + 1 :]]
        assert loop_energy(unary[0], pairwise[0], changed) >= best - 1e-6


def test_value_one_output_against_enumeration():
    """2 x 2 blocks, 3 images: of 81 labellings ICM nearly always finds the cheapest, never a cheaper one."""
    hits = 0
    for seed in range(40):
        task, n, images = problem(seed=seed), 4, 3
        z = random_outputs(1, images, n, seed)
        old, others = z[:, 0], z[:, 1:].sum(dim=1)
        price = 0.05 * torch.rand(1, images, generator=seeded(seed))
        unary = torch.zeros(n, images)
        for k in range(images):
            used = sum(float(task.compatibility[0, k, j] * others[0, :, j].sum()) for j in range(images))
            overuse = 2 * task.gamma * used if used > task.tau else 0.0
            for b in range(n):
                unary[b, k] = task.unary[0, b, k] + price[0, k] + overuse
        potts = task.beta * (1 - torch.eye(images))
        cheapest = min(loop_energy(unary, potts, list(c)) for c in itertools.product(range(images), repeat=n))
        found = best_output(task, price, others, old, soft=False)
        assert ((found == 0) | (found == 1)).all() and (found.sum(dim=2) == 1).all()
        reached = loop_energy(unary, potts, found[0].argmax(dim=1).tolist())
        assert reached >= cheapest - 1e-6
        hits += reached <= cheapest + 1e-6
    assert hits >= 38


def test_value_two_images_allow_one_half_and_half_label():
    old = F.one_hot(torch.tensor([[1, 1, 3, 1]]), 4).float()
    unary = torch.rand(1, 4, 4)
    weights, costs = soft_labels(unary, old)
    assert weights[0, 0].tolist() == [0, 0.5, 0, 0.5]
    torch.testing.assert_close(costs[0, :, 0], (unary[0, :, 1] + unary[0, :, 3]) / 2 - 5e-4)
    assert (costs[0, :, 1:] > 1e5).all()


def test_value_more_images_allow_the_pairs_of_the_three_most_frequent():
    blocks = torch.tensor([[4, 4, 4, 2, 2, 0, 0, 0, 0]])
    weights, costs = soft_labels(torch.rand(1, 9, 5), F.one_hot(blocks, 5).float())
    assert {tuple(row.nonzero()[:, 0].tolist()) for row in weights[0]} == {(0, 4), (0, 2), (2, 4)}
    assert (costs < 10).all()


def test_value_one_image_allows_no_half_and_half_label():
    old = F.one_hot(torch.ones(1, 4, dtype=torch.long), 3).float()
    assert (soft_labels(torch.rand(1, 4, 3), old)[1] > 1e5).all()


def test_value_half_and_half_labels_pay_a_quarter_beside_their_parents():
    weights = torch.cat([torch.eye(3), torch.tensor([[0.5, 0.5, 0], [0.5, 0, 0.5]])])[None]
    expected = [[0, 1, 1, 0.25, 0.25], [1, 0, 1, 0.25, 1], [1, 1, 0, 1, 0.25]]
    expected += [[0.25, 0.25, 1, 0, 1], [0.25, 1, 0.25, 1, 0]]
    assert differences(weights)[0].tolist() == expected


def test_value_two_equally_salient_images_share_their_blocks():
    """Where two images cost the same, the bonus makes the half-and-half label the cheapest."""
    task = problem(images=3)._replace(unary=torch.tensor([-0.2, -0.2, 0.0]).expand(1, 4, 3))
    old = F.one_hot(torch.tensor([[0, 1, 0, 1]]), 3).float()
    found = best_output(task, torch.zeros(1, 3), torch.zeros(1, 4, 3), old, soft=True)
    assert torch.equal(found, torch.tensor([0.5, 0.5, 0.0]).expand(1, 4, 3))


# --- all outputs of a part -------------------------------------------------------------------------------


def test_value_the_objective_against_a_loop():
    task, z = problem(2, 3, 3), random_outputs(2, 3, 9)
    z[0, 1, 4] = torch.tensor([0.5, 0, 0.5])
    values = objective(task, z)
    for g in range(2):
        total = float((task.unary[g] * z[g]).sum())
        for o, (b, c) in itertools.product(range(3), neighbours(3)):
            total += task.beta / 2 * float((z[g, o, b] - z[g, o, c]).square().sum())
        for k in range(3):
            count = z[g, :, :, k].sum(dim=1)
            total += task.gamma * float(count.sum() ** 2 - (count**2).sum())
        assert float(values[g]) == pytest.approx(total, rel=1e-5)


def test_value_duplicates_pay_on_the_first_and_second_image_of_their_set():
    blocks = torch.tensor([[[0, 2], [2, 0], [1, 1], [0, 2], [1, 1]]])  # outputs 0, 1, 3 show {0, 2}
    expected = torch.zeros(5, 5)
    sets = [frozenset(row) for row in blocks[0].tolist()]
    for o, p in itertools.combinations(range(5), 2):
        if sets[o] == sets[p] and len(sets[o]) >= 2:
            first, second = sorted(sets[o])[:2]
            expected[o, first] += 1
            expected[p, second] += 1
    assert expected.sum() == 6
    assert torch.equal(duplicate_price(F.one_hot(blocks, 5).float())[0], expected)


def test_value_padding_changes_nothing():
    """A part of 4 solved beside a part of 6 ends as it does alone."""
    alone = problem(1, 4, 4)
    start = random_outputs(1, 4, 16)
    expected = solve(alone, start, 4)[0]
    both = problem(2, 6, 4, seed=9)
    real = both.real.clone()
    real[1, 4:] = False
    unary, near, z = both.unary.clone(), both.compatibility.clone(), random_outputs(2, 6, 16)
    unary[1], near[1], z[1] = solver.FORBIDDEN, 0.0, 0.0
    unary[1, :, :4], near[1, :4, :4], z[1, :4, :, :4] = alone.unary[0], alone.compatibility[0], start[0]
    found = solve(both._replace(unary=unary, compatibility=near, real=real), z, 4)[1]
    torch.testing.assert_close(found[:4, :, :4], expected)
    assert found[4:].sum() == 0 and found[..., 4:].sum() == 0


def test_value_the_first_round_has_no_half_and_half_labels():
    task, start = problem(2, 6, 4), random_outputs(2, 6, 16)
    assert not (solve(task, start, 1) == 0.5).any()
    assert (solve(task, start, 4) == 0.5).any()


def test_value_a_part_that_stands_still_stops(monkeypatch):
    """Part 0 is at rest after round 2, part 1 never: only part 1 goes on, and the last round is reached."""
    task, start = problem(2, 3, 2), random_outputs(2, 3, 4)
    turns = []

    def spin(task, z, price, soft):
        turns.append(soft)
        z = z.roll(1, dims=3)  # another image everywhere
        if len(turns) == 2:
            z = torch.cat([seen[0][:1], z[1:]])
        seen.insert(0, z)
        return z

    seen: list[torch.Tensor] = []
    monkeypatch.setattr(solver, "improve", spin)
    end = solve(task, start, 4)
    assert turns == [False, True, True, True]
    assert torch.equal(end[0], start[0].roll(1, dims=2))
    assert torch.equal(end[1], start[1].roll(4, dims=2))


def test_value_everything_at_rest_ends_the_search(monkeypatch):
    turns = []
    monkeypatch.setattr(solver, "improve", lambda task, z, price, soft: turns.append(soft) or z)
    solve(problem(2), random_outputs(2, 3, 4), 4)
    assert turns == [False]


def test_value_duplicates_are_priced_in_the_last_round_only(monkeypatch):
    prices = []

    def watch(task, z, price, soft):
        prices.append(float(price.sum()))
        return z.roll(1, dims=3)

    monkeypatch.setattr(solver, "improve", watch)
    labels = torch.tensor([[[0, 0, 1, 1], [0, 1, 1, 1], [2, 2, 2, 2]]])
    task = problem(1, 3, 2)
    solve(task, F.one_hot(labels, 3).float(), 4)
    assert prices == [0, 0, 0, pytest.approx(2 * task.gamma)]


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
    z = policy.shares(blobs(7, size), seeded())  # [B, P, 4, 4]
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
    greedy = CoMixup(gamma=0.0).shares(saliency, seeded()).mean(dim=(2, 3)).sum(dim=0)
    fair = CoMixup().shares(saliency, seeded()).mean(dim=(2, 3)).sum(dim=0)
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
