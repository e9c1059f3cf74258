"""Sinkhorn's transport plan against a loop over its entries."""

import math

import pytest
import torch

from samix.mixups.sinkhorn import squared_distances, transport_plan


def log_sum_exp(values: list[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def loop_plans(costs: torch.Tensor, epsilon: float, iterations: int, tolerance: float) -> torch.Tensor:
    """Sinkhorn as AlignMix has it, with potentials in the units of the cost, entry by entry in doubles."""
    cost, (batch, r, _) = costs.tolist(), costs.shape
    f, g = [[0.0] * r for _ in range(batch)], [[0.0] * r for _ in range(batch)]
    mass, span = math.log(1 / r + 1e-8), range(r)

    def score(b: int, u: int, v: int) -> float:
        return (-cost[b][u][v] + f[b][u] + g[b][v]) / epsilon

    for _ in range(iterations):
        moved = 0.0
        for b in range(batch):
            steps = [epsilon * (mass - log_sum_exp([score(b, u, v) for v in span])) for u in span]
            f[b] = [value + step for value, step in zip(f[b], steps, strict=True)]
            moved += sum(map(abs, steps)) / batch
            steps = [epsilon * (mass - log_sum_exp([score(b, u, v) for u in span])) for v in span]
            g[b] = [value + step for value, step in zip(g[b], steps, strict=True)]
        if moved < tolerance:
            break
    return torch.tensor([[[math.exp(score(b, u, v)) for v in span] for u in span] for b in range(batch)])


def test_value_squared_distances_against_a_loop():
    first, second = torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    cost = squared_distances(first, second)
    for b, u, v in torch.cartesian_prod(*(torch.arange(n) for n in (2, 4, 4))).tolist():
        expected = sum((float(first[b, c, u]) - float(second[b, c, v])) ** 2 for c in range(5))
        assert float(cost[b, u, v]) == pytest.approx(expected, rel=1e-5)


def test_value_distances_of_large_vectors_keep_their_small_differences():
    first = torch.full((1, 2, 1), 1000.0)
    assert float(squared_distances(first, first + 0.5)) == pytest.approx(0.5)


@pytest.mark.parametrize("scale", [0.02, 0.3, 3.0, 30.0])
def test_value_plan_against_a_loop(scale):
    cost = scale * torch.rand(3, 4, 4)
    torch.testing.assert_close(transport_plan(cost), loop_plans(cost, 0.1, 100, 0.1), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_value_plan_stops_after_its_rounds(iterations):
    cost = 10 * torch.rand(2, 5, 5)
    plan = transport_plan(cost, iterations=iterations, tolerance=0.0)
    torch.testing.assert_close(plan, loop_plans(cost, 0.1, iterations, 0.0), rtol=1e-3, atol=1e-6)


def test_value_plan_stops_early_where_it_has_converged():
    cost = 0.3 * torch.rand(3, 4, 4)
    assert torch.equal(transport_plan(cost), transport_plan(cost, iterations=2))
    assert not torch.equal(transport_plan(cost), transport_plan(cost, tolerance=0.0))


@pytest.mark.parametrize("scale", [0.1, 10.0, 1e4])
def test_invariant_columns_of_the_plan_have_their_mass(scale):
    plan = transport_plan(scale * torch.rand(2, 16, 16))
    assert plan.min() >= 0 and plan.isfinite().all()
    torch.testing.assert_close(plan.sum(dim=1), torch.full((2, 16), 1 / 16), rtol=1e-2, atol=0)


def test_invariant_the_plan_is_float32_even_for_half_precision():
    assert transport_plan(300 * torch.rand(1, 4, 4).bfloat16()).dtype == torch.float32
    cost = squared_distances(*torch.rand(2, 1, 4, 4).bfloat16())
    assert cost.dtype == torch.float32
