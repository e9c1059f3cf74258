"""AlignMix: the transport plan, both directions of the alignment and the two coins."""

import math

import pytest
import torch
from torch import nn

from samix.core.pairing import Pairing
from samix.mixups.alignmix import AlignMix, align, align_and_blend, patch_side
from samix.mixups.sinkhorn import squared_distances, transport_plan
from samix.nn.zoo import build_encoder

INDEX = torch.tensor([2, 0, 1])


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


def shuffled(maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same vectors at other positions, and where each went."""
    order = torch.randperm(maps.shape[2])
    return maps[:, :, order], order


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


@pytest.mark.parametrize("like_first", [True, False])
def test_value_equal_maps_stay_as_they_are(like_first):
    """The plan between equal maps is the identity: R = I."""
    maps = 3 * torch.randn(2, 8, 6)
    plan = transport_plan(squared_distances(maps, maps))
    torch.testing.assert_close(6 * plan, torch.eye(6).expand(2, 6, 6), atol=1e-4, rtol=0)
    out = align_and_blend(maps, maps, torch.tensor([0.3]), torch.tensor([like_first]))
    torch.testing.assert_close(out, maps, atol=1e-3, rtol=0)


def test_value_the_same_vectors_elsewhere_are_brought_back():
    first = 3 * torch.randn(2, 8, 6)
    second, order = shuffled(first)
    assert order.tolist() != list(range(6))
    kept, brought = align(first, second, torch.tensor([True]))
    assert torch.equal(kept, first)
    torch.testing.assert_close(brought, first, atol=1e-3, rtol=0)
    moved, kept = align(first, second, torch.tensor([False]))
    assert torch.equal(kept, second)
    torch.testing.assert_close(moved, second, atol=1e-3, rtol=0)


@pytest.mark.parametrize("like_first", [True, False])
@pytest.mark.parametrize("lam", [[0.3], [0.0, 0.6, 0.9]], ids=["one lam", "lam per sample"])
def test_value_blend_against_a_loop(lam, like_first):
    first, second, lam = torch.randn(3, 2, 4), torch.randn(3, 2, 4), torch.tensor(lam)
    out = align_and_blend(first, second, lam, torch.tensor([like_first]))
    shares = 4 * transport_plan(squared_distances(first, second))
    for b, c, p in torch.cartesian_prod(*(torch.arange(n) for n in (3, 2, 4))).tolist():
        weight, one, two = float(lam[b % len(lam)]), float(first[b, c, p]), float(second[b, c, p])
        if like_first:
            two = sum(float(shares[b, p, v] * second[b, c, v]) for v in range(4))
        else:
            one = sum(float(shares[b, u, p] * first[b, c, u]) for u in range(4))
        assert float(out[b, c, p]) == pytest.approx(weight * one + (1 - weight) * two, abs=1e-5)


def test_value_directions_are_drawn_per_lam():
    first, second = torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    lam = torch.tensor([0.3, 0.4, 0.5])
    ways = torch.tensor([True, False, True])
    out = align_and_blend(first, second, lam, ways)
    for i in range(3):
        alone = align_and_blend(first, second, lam, ways[i : i + 1])
        assert torch.equal(out[i], alone[i])


@pytest.mark.parametrize("like_first", [True, False])
def test_invariant_lam_one_keeps_the_first(like_first):
    first, second = torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    out = align_and_blend(first, second, torch.tensor([1.0, 0.5, 1.0]), torch.tensor([like_first]))
    assert [torch.equal(out[i], first[i]) for i in range(3)] == [True, False, True]


def test_value_second_coin_is_fair():
    """Maps of three positions, so that the direction can be read from the result."""
    maps, pairing = 3 * torch.randn(2, 2, 1, 3), Pairing(torch.tensor([0.0]), torch.tensor([1, 0]))
    draw, like_partner = torch.Generator().manual_seed(4), 0
    for _ in range(200):
        mixed, _ = AlignMix().mix_maps(maps, pairing, draw)
        like_partner += torch.equal(mixed, maps[pairing.index])  # with lam = 0 nothing else is left
    assert like_partner == pytest.approx(100, abs=30)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_value_first_coin(share):
    policy, draw = AlignMix(input_share=share, layers=("a", "b")), torch.Generator().manual_seed(4)
    drawn = [policy.draw_layer(draw) for _ in range(2000)]
    assert drawn.count("input") / 2000 == pytest.approx(share, abs=0.04)
    assert drawn.count("a") == pytest.approx(drawn.count("b"), abs=150)


def test_value_the_last_map_is_mixed_and_the_images_are_not():
    network, x = build_encoder("small-resnet", width=4).eval(), torch.rand(3, 3, 16, 24)
    lam = torch.tensor([0.3])
    draw = torch.Generator().manual_seed(4)
    outputs, mixed = AlignMix(input_share=0.0).run(network, x, Pairing(lam, INDEX), None, draw)
    maps = network.network.forward_features(x)
    assert maps.shape == (3, 32, 2, 3)
    maps = maps.flatten(2)
    ways = [align_and_blend(maps, maps[INDEX], lam, torch.tensor([way])) for way in (True, False)]
    assert sum(torch.allclose(outputs, way.mean(dim=2), atol=1e-5) for way in ways) == 1
    assert mixed.x is x and torch.equal(mixed.pairing.lam, lam)


def test_value_input_is_mixup():
    network, x = build_encoder("small-resnet", width=4).eval(), torch.rand(3, 3, 8, 12)
    outputs, mixed = AlignMix(input_share=1.0).run(network, x, Pairing(torch.tensor([0.3]), INDEX))
    torch.testing.assert_close(mixed.x, 0.3 * x + 0.7 * x[INDEX])
    torch.testing.assert_close(outputs, network(mixed.x))


def test_value_a_map_of_one_position_is_mixup():
    maps, lam = torch.randn(3, 4, 1, 1), torch.tensor([0.3])
    mixed, weight = AlignMix().mix_maps(maps, Pairing(lam, INDEX))
    torch.testing.assert_close(mixed, 0.3 * maps + 0.7 * maps[INDEX], atol=1e-5, rtol=0)
    assert torch.equal(weight, lam)


@pytest.mark.parametrize("like_first", [True, False])
def test_gradient_does_not_pass_through_the_plan(like_first):
    first, second = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 3, 4, requires_grad=True)
    out = align_and_blend(first, second, torch.tensor([0.3]), torch.tensor([like_first]))
    grads = torch.autograd.grad(out.square().sum(), (first, second))
    fixed = 4 * transport_plan(squared_distances(first, second))
    assert not fixed.requires_grad
    one, two = (first, second @ fixed.mT) if like_first else (first @ fixed, second)
    expected = torch.autograd.grad((0.3 * one + 0.7 * two).square().sum(), (first, second))
    torch.testing.assert_close(grads, expected)


def test_value_half_precision_maps_under_autocast():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
    x = torch.rand(3, 3, 8, 8)
    network(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        policy = AlignMix(layers=("1",), input_share=0.0)
        outputs, _ = policy.run(network, x, Pairing(torch.tensor([0.3]), INDEX))
    assert outputs.dtype == torch.bfloat16 and outputs.isfinite().all()


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_error_input_share(share):
    with pytest.raises(ValueError, match=rf"mixup.input_share must lie in \[0, 1\], got {share}"):
        AlignMix(input_share=share)


@pytest.mark.parametrize(
    ("size", "side"), [((32, 32), 2), ((16, 16), 1), ((64, 64), 4), ((12, 20), 1), ((33, 34), 1)]
)
def test_value_pictures_are_mixed_in_patches(size, side):
    assert patch_side(*size) == side
