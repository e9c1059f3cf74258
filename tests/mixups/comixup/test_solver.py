"""Co-Mixup's solver against loops and enumeration."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from samix.mixups.comixup import solver
from samix.mixups.comixup.policy import draw_start
from samix.mixups.comixup.solver import (
    Problem,
    best_output,
    duplicate_price,
    energy,
    icm,
    label_differences,
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
    assert label_differences(weights)[0].tolist() == expected


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
