"""PatchUp: holes of its code, label weights of both kinds, CutMix at the input, the doubled loss."""

import pytest
import torch
from torch.nn import functional as F

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.mixups.patchup import PatchUp, draw_holes, fitting_block, seed_rate
from samix.nn.zoo import build_encoder

INDEX = torch.tensor([2, 0, 1])


def generator(seed: int = 4) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loop_holes(seeds: torch.Tensor, block: int) -> torch.Tensor:
    """Every seed paints its square, cut off at the border."""
    holes = torch.zeros(seeds.shape)
    half, (_, _, height, width) = block // 2, seeds.shape
    for n, c, row, column in seeds.nonzero().tolist():
        for h in range(max(row - half, 0), min(row + half + 1, height)):
            for w in range(max(column - half, 0), min(column + half + 1, width)):
                holes[n, c, h, w] = 1
    return holes


@pytest.mark.parametrize("block", [1, 3, 7])
@pytest.mark.parametrize("size", [(8, 8), (12, 9), (7, 20)])
def test_value_holes_against_a_loop(size, block):
    rate = 0.5 * size[0] * size[1] / (block**2 * (size[0] - block + 1) * (size[1] - block + 1))
    seeds = torch.rand(2, 3, *size, generator=generator()) < rate
    assert seeds.any()
    assert torch.equal(draw_holes((2, 3, *size), 0.5, block, generator()), loop_holes(seeds, block))


def test_value_seed_rate_on_a_square_map_is_that_of_the_paper():
    assert seed_rate(0.5, 7, (32, 32)) == pytest.approx(0.5 * 32**2 / (7**2 * (32 - 7 + 1) ** 2))
    assert seed_rate(0.5, 7, (7, 7)) == pytest.approx(0.5)


@pytest.mark.parametrize(("side", "block"), [(1, 1), (2, 1), (3, 3), (4, 3), (6, 5), (7, 7), (8, 7), (32, 7)])
def test_value_the_block_is_the_largest_odd_one_that_fits(side, block):
    assert fitting_block(7, (side, 40)) == fitting_block(7, (40, side)) == block
    assert draw_holes((1, 2, side, 9), 0.5, 7).shape == (1, 2, side, 9)


@pytest.mark.parametrize("size", [(16, 16), (9, 14)])
def test_value_share_of_the_holes(size):
    """A position is covered unless every seed of its (cut off) window is absent: exact expectation."""
    rate, (height, width) = seed_rate(0.5, 7, size), size
    expected = 0.0
    for h in range(height):
        for w in range(width):
            rows = min(h + 3, height - 1) - max(h - 3, 0) + 1
            columns = min(w + 3, width - 1) - max(w - 3, 0) + 1
            expected += (1 - (1 - rate) ** (rows * columns)) / (height * width)
    share = float(draw_holes((20, 100, *size), 0.5, 7, generator()).mean())
    assert share == pytest.approx(expected, abs=0.02)


def test_value_holes_differ_between_channels():
    holes = draw_holes((1, 64, 16, 16), 0.5, 7, generator())
    assert len({tuple(channel.flatten().tolist()) for channel in holes[0]}) > 40


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("lam", [[0.3], [0.0, 0.6, 0.9]], ids=["one lam", "lam per sample"])
def test_value_maps_against_a_loop(hard, lam):
    maps, lam = torch.randn(3, 4, 9, 8), torch.tensor(lam)
    mixed, weight = PatchUp(hard=hard).mix_maps(maps, Pairing(lam, INDEX), generator())
    holes = draw_holes((len(lam), 4, 9, 8), 0.5, 7, generator())
    for i in range(3):
        hole, share = holes[i % len(lam)], float(lam[i % len(lam)])
        for c, h, w in torch.cartesian_prod(*(torch.arange(n) for n in (4, 9, 8))).tolist():
            first, second = float(maps[i, c, h, w]), float(maps[INDEX[i], c, h, w])
            shown = second if hard else share * first + (1 - share) * second
            expected = shown if hole[c, h, w] else first
            assert float(mixed[i, c, h, w]) == pytest.approx(expected, abs=1e-6)
        unchanged = 1 - float(hole.mean())
        expected = unchanged if hard else unchanged + share * (1 - unchanged)
        assert float(weight[i % len(lam)]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("hard", [True, False])
def test_value_ones_with_zeros_show_the_label_weight(hard):
    maps = torch.stack([torch.ones(8, 12, 10), torch.zeros(8, 12, 10)])
    mixed, weight = PatchUp(hard=hard).mix_maps(maps, Pairing(torch.tensor([0.4]), torch.tensor([1, 0])))
    assert float(mixed[0].mean()) == pytest.approx(float(weight), abs=1e-5)
    assert float(mixed[1].mean()) == pytest.approx(1 - float(weight), abs=1e-5)


def test_value_one_set_of_holes_for_one_lam_and_one_per_pair_for_many():
    maps = torch.stack([torch.zeros(4, 16, 16), torch.ones(4, 16, 16)]).repeat(3, 1, 1, 1)
    index = torch.arange(6).roll(1)
    shared, _ = PatchUp().mix_maps(maps, Pairing(torch.tensor([0.4]), index), generator())
    assert torch.equal(shared[0], shared[2]) and torch.equal(shared[0], 1 - shared[1])
    own, weight = PatchUp().mix_maps(maps, Pairing(torch.full((6,), 0.4), index), generator())
    assert not torch.equal(own[0], own[2]) and len(weight.unique()) > 1


@pytest.mark.parametrize("hard", [True, False])
def test_value_the_originals_loss_is_twice_ours(hard):
    """p_u l(y_i) + (1 - p_u) l(t) + l(W) = 2 l(W): only the factor differs."""
    logits, y, lam = torch.randn(3, 5), torch.tensor([0, 3, 1]), torch.tensor([0.3])
    maps = torch.randn(3, 4, 9, 8)
    _, weight = PatchUp(hard=hard).mix_maps(maps, Pairing(lam, INDEX), generator())
    unchanged = 1 - draw_holes((1, 4, 9, 8), 0.5, 7, generator()).mean()
    rows = F.one_hot(y, 5).float()
    shown = rows[INDEX] if hard else lam * rows + (1 - lam) * rows[INDEX]
    parts = [F.cross_entropy(logits, rows), F.cross_entropy(logits, shown)]
    whole = F.cross_entropy(logits, unchanged * rows + (1 - unchanged) * shown)
    mixed = Mixed(torch.rand(3, 3, 8, 8), torch.rand(1, 1, 8, 8), Pairing(weight, INDEX))
    ours = mixed.loss(lambda v, t: F.cross_entropy(v, t, reduction="none"), logits, y)
    torch.testing.assert_close(whole, ours)
    torch.testing.assert_close(unchanged * parts[0] + (1 - unchanged) * parts[1] + whole, 2 * ours)


def test_value_input_is_cutmix_with_a_lam_of_its_own():
    network, x = build_encoder("small-resnet", width=4).eval(), torch.rand(3, 3, 12, 20)
    outputs, mixed = PatchUp(layers=("input",)).run(network, x, Pairing(torch.tensor([0.5]), INDEX))
    assert set(mixed.mask.unique().tolist()) <= {0.0, 1.0}
    torch.testing.assert_close(mixed.x, torch.where(mixed.mask == 1, x, x[INDEX]))
    torch.testing.assert_close(outputs, network(mixed.x))
    assert float(mixed.pairing.lam) == pytest.approx(float(mixed.mask.mean()))


def test_value_the_boxes_at_the_input_come_from_a_uniform_lam():
    """E = .68 as for CutMix with alpha = 1, whatever lam the pairing has."""
    x = torch.zeros(1000, 3, 32, 32)
    pairing = Pairing(torch.full((1000,), 0.1), torch.arange(1000).roll(1))
    _, mixed = PatchUp(layers=("input",)).run(torch.nn.Identity(), x, pairing, None, generator())
    assert float(mixed.pairing.lam.mean()) == pytest.approx(0.68, abs=0.03)


@pytest.mark.parametrize(("settings", "prob"), [({}, 0.7), ({"hard": False, "prob": 1.0}, 1.0)])
def test_value_batches_that_stay_clean(settings, prob):
    policy, draw = PatchUp(**settings), generator()
    drawn = torch.stack([policy.draw(4, draw).lam for _ in range(600)])
    assert float((drawn < 1).float().mean()) == pytest.approx(prob, abs=0.05)
    assert float(drawn[drawn < 1].var()) == pytest.approx(1 / 20, abs=0.008), "Beta(2, 2)"


def test_gradient_flows_from_where_the_values_came():
    maps = torch.randn(2, 4, 9, 8, requires_grad=True)
    index = torch.tensor([1, 0])
    mixed, _ = PatchUp().mix_maps(maps, Pairing(torch.tensor([0.3]), index), generator())
    (grad,) = torch.autograd.grad(mixed[0].sum(), maps)
    holes = draw_holes((1, 4, 9, 8), 0.5, 7, generator())[0]
    assert torch.equal(grad[0], 1 - holes) and torch.equal(grad[1], holes)


@pytest.mark.parametrize("gamma", [0.0, -0.1, 1.5])
def test_error_gamma(gamma):
    with pytest.raises(ValueError, match=rf"mixup.gamma must lie in \(0, 1\], got {gamma}"):
        PatchUp(gamma=gamma)


@pytest.mark.parametrize("block", [0, -3, 4])
def test_error_block(block):
    with pytest.raises(ValueError, match=rf"mixup.block must be a positive odd number, got {block}"):
        PatchUp(block=block)
