"""AlignMix: both directions of the alignment, and what is drawn."""

import pytest
import torch
from torch import nn

from samix.core.pairing import Pairing
from samix.mixups.alignmix import AlignMix, align, align_and_blend, patch_side
from samix.mixups.sinkhorn import squared_distances, transport_plan
from samix.nn.zoo import build_encoder

INDEX = torch.tensor([2, 0, 1])


def shuffled(maps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same vectors at other positions, and where each went."""
    order = torch.randperm(maps.shape[2])
    return maps[:, :, order], order


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
    policy = AlignMix()
    for _ in range(100):
        mixed, _ = policy.mix_maps(maps, pairing, draw)
        like_partner += torch.equal(mixed, maps[pairing.index])  # with lam = 0 nothing else is left
    assert like_partner == pytest.approx(50, abs=20)


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
