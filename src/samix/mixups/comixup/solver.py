"""Solves the discrete problem of Co-Mixup: which image fills which block of which output.

G parts of a batch are solved at once, each with K images and K outputs of n blocks. z_o(b) holds the weights
of the K images (sum 1); the outputs are optimised one after the other, with the others held fixed:

    minimise  sum_b (c + e)(b) . z_o(b) + beta #(unequal 4-neighbours)

c is the unary cost of the part, e_k = 2 gamma (A N)_k [(A N)_k > tau] the price of an image of which the
other outputs already use N_k blocks. The original minimises by alpha-beta swaps on the CPU, part by part;
here iterated conditional modes (ICM) run on a checkerboard from three starts, for all parts at once.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

Outputs = Float[Tensor, "G K n K"]  # [part, output, block, image]
Output = Float[Tensor, "G n K"]
Unary = Float[Tensor, "N n L"]  # cost of each label at each block
Pairwise = Float[Tensor, "N L L"]  # cost of two labels side by side
Chosen = Int[Tensor, "N n"]  # the label of each block

SWEEPS = 4
"""Rounds of ICM."""
FORBIDDEN = 1e6
"""Cost of a label that must not be used; finite, so that 0 times it is 0."""
SOFT_BONUS = 5e-4
"""Half-and-half labels are this much cheaper than the mean of their parents."""


class Grid(NamedTuple):
    """Which of the n blocks are neighbours."""

    adjacent: Float[Tensor, "n n"]
    """1 for 4-neighbours."""
    black: Bool[Tensor, "n"]
    """The black fields of a checkerboard: no two black and no two white fields are neighbours."""


class Problem(NamedTuple):
    """Costs of G parts; smaller parts are padded."""

    unary: Output
    """c_k(b), the same for every output."""
    compatibility: Float[Tensor, "G K K"]
    """A: how much using one image raises the price of another."""
    real: Bool[Tensor, "G K"]
    """False for padding."""
    grid: Grid
    beta: float
    """Cost of two unequal neighbours."""
    gamma: float
    """Cost of using an image too often."""
    tau: float
    """How many blocks of an image may be used without a price."""


def make_grid(side: int, device: torch.device | str | None = None) -> Grid:
    """The grid of side x side blocks, numbered row by row."""
    place = torch.arange(side, device=device)
    rows, columns = place.repeat_interleave(side), place.repeat(side)
    distance = (rows[:, None] - rows).abs() + (columns[:, None] - columns).abs()
    return Grid((distance == 1).float(), (rows + columns) % 2 == 0)


def label_costs(unary: Unary, pairwise: Pairwise, grid: Grid, labels: Chosen) -> Unary:
    """The cost of each label at each block, with the neighbours held fixed."""
    beside = pairwise.gather(1, labels[..., None].expand(-1, -1, pairwise.shape[2]))  # [N, n, L]
    return unary + grid.adjacent @ beside


def energy(unary: Unary, pairwise: Pairwise, grid: Grid, labels: Chosen) -> Float[Tensor, "N"]:
    """Cost of a labelling; every pair of neighbours counts once."""
    costs = (unary + label_costs(unary, pairwise, grid, labels)) / 2
    return costs.gather(2, labels[..., None]).sum(dim=(1, 2))


def icm(unary: Unary, pairwise: Pairwise, grid: Grid, labels: Chosen, sweeps: int = SWEEPS) -> Chosen:
    """Gives all black, then all white blocks their cheapest label, `sweeps` times; energy never rises."""
    for _ in range(sweeps):
        for colour in (grid.black, ~grid.black):
            best = label_costs(unary, pairwise, grid, labels).argmin(dim=2)
            labels = torch.where(colour, best, labels)
    return labels


def minimise(unary: Unary, pairwise: Pairwise, grid: Grid, labels: Chosen) -> Chosen:
    """The best result of ICM from three starts, because it stops at the nearest local minimum.

    The starts: the given labels, the cheapest label of each block, the cheapest single label everywhere.
    """
    count = len(labels)
    single = unary.sum(dim=1).argmin(dim=1, keepdim=True).expand_as(labels)
    starts = torch.cat([labels, unary.argmin(dim=2), single])
    unary, pairwise = unary.repeat(3, 1, 1), pairwise.repeat(3, 1, 1)
    ends = icm(unary, pairwise, grid, starts)
    best = energy(unary, pairwise, grid, ends).view(3, count).argmin(dim=0)
    return ends.view(3, count, -1)[best, torch.arange(count, device=best.device)]


def soft_labels(unary: Output, old: Output) -> tuple[Float[Tensor, "G S K"], Float[Tensor, "G n S"]]:
    """Weights and costs of half-and-half labels, made of the (up to three) images that `old` shows most."""
    counts = old.sum(dim=1)
    frequent = counts.topk(min(3, counts.shape[1]), dim=1).indices
    pairs = torch.combinations(torch.arange(frequent.shape[1], device=old.device)).T
    first, second = frequent[:, pairs[0]], frequent[:, pairs[1]]  # [G, S]
    weights = (F.one_hot(first, counts.shape[1]) + F.one_hot(second, counts.shape[1])).to(unary) / 2
    # The second parent is never the more frequent one: if it is shown, so is the first.
    price = torch.where(counts.gather(1, second) > 0, -SOFT_BONUS, FORBIDDEN)[:, None]
    costs = [unary.gather(2, parent[:, None].expand(-1, unary.shape[1], -1)) for parent in (first, second)]
    return weights, (costs[0] + costs[1]) / 2 + price


def label_differences(weights: Float[Tensor, "G L K"]) -> Float[Tensor, "G L L"]:
    """0 for equal labels, 1/4 for a half-and-half label and one of its parents, 1 otherwise.

    The first K labels are the images themselves.
    """
    labels, images = weights.shape[1:]
    parent = F.pad(weights == 0.5, (0, labels - images))  # [G, L, L]: the column is a parent of the row
    unequal = 1 - torch.eye(labels, device=weights.device)
    return torch.where(parent | parent.mT, 0.25, unequal)


def nearest_labels(weights: Float[Tensor, "G L K"], old: Output) -> Int[Tensor, "G n"]:
    """The label of each block in `old`; a half-and-half label that no longer exists becomes a parent."""
    closeness = old @ weights.mT - weights.square().sum(dim=2)[:, None] / 2
    return closeness.argmax(dim=2)


def best_output(
    problem: Problem, price: Float[Tensor, "G K"], others: Output, old: Output, soft: bool
) -> Output:
    """The best z_o with the other outputs held fixed; `price` is added to the cost of each image."""
    used = (problem.compatibility * others.sum(dim=1)[:, None]).sum(dim=2)  # A N, [G, K]
    price = price + 2 * problem.gamma * used * (used > problem.tau)
    unary = problem.unary + price[:, None]
    weights = torch.eye(unary.shape[2]).to(unary).expand(len(unary), -1, -1)
    if soft:
        halves, costs = soft_labels(unary, old)
        weights, unary = torch.cat([weights, halves], dim=1), torch.cat([unary, costs], dim=2)
    pairwise = problem.beta * label_differences(weights)
    labels = minimise(unary, pairwise, problem.grid, nearest_labels(weights, old))
    return weights.gather(1, labels[..., None].expand(-1, -1, weights.shape[2]))


def improve(problem: Problem, z: Outputs, price: Float[Tensor, "G K K"], soft: bool) -> Outputs:
    """One round: optimises each output in turn, with the others held fixed."""
    outputs, total = list(z.unbind(dim=1)), z.sum(dim=1)
    for o, old in enumerate(outputs):
        best = best_output(problem, price[:, o], total - old, old, soft)
        outputs[o] = best * problem.real[:, o, None, None]  # padding uses no image
        total = total - old + outputs[o]
    return torch.stack(outputs, dim=1)


def duplicate_price(z: Outputs) -> Float[Tensor, "G K K"]:
    """A price for outputs that show the same set of two or more images: [part, output, image].

    For each two such outputs, the earlier pays 1 for the first image of the set, the later 1 for the second.
    """
    shown = z.sum(dim=2) > 0  # [G, output, image]
    same = (shown[:, :, None] == shown[:, None]).all(dim=3) & (shown.sum(dim=2) >= 2)[..., None]
    order = shown.cumsum(dim=2) * shown  # 1 on the first image of the set, 2 on the second
    earlier, later = same.triu(1).sum(dim=2), same.tril(-1).sum(dim=2)  # [G, output]
    return ((order == 1) * earlier[..., None] + (order == 2) * later[..., None]).to(z)


def objective(problem: Problem, z: Outputs) -> Float[Tensor, "G"]:
    """sum c z + beta / 2 sum |z(b) - z(b')|^2 + gamma (sum_k (sum_o n_ok)^2 - sum_ok n_ok^2)."""
    unary = (problem.unary[:, None] * z).sum(dim=(1, 2, 3))
    # Over neighbours b, b': sum |z(b) - z(b')|^2 = sum_b degree(b) |z(b)|^2 - sum_b z(b) . sum_b' z(b').
    degree = problem.grid.adjacent.sum(dim=1)[:, None]
    rough = (z * (degree * z - problem.grid.adjacent @ z)).sum(dim=(1, 2, 3))
    count = z.sum(dim=2)  # n_ok, [G, output, image]
    crowd = count.sum(dim=1).square().sum(dim=1) - count.square().sum(dim=(1, 2))
    return unary + problem.beta / 2 * rough + problem.gamma * crowd


def solve(problem: Problem, z: Outputs, rounds: int) -> Outputs:
    """Optimises all outputs in turn, `rounds` times; a part whose objective no longer changes is done."""
    value = objective(problem, z)
    running = torch.ones_like(value, dtype=torch.bool)
    for turn in range(rounds):
        last = turn > 0 and turn == rounds - 1
        price = problem.gamma * duplicate_price(z) if last else z.new_zeros(z.shape[:2] + z.shape[3:])
        z = torch.where(running.view(-1, 1, 1, 1), improve(problem, z, price, soft=turn > 0), z)
        before, value = value, objective(problem, z)
        running = running & ((value - before).abs() >= 1e-6 * before.abs())
        if not running.any():
            break
    return z
