"""TokenMix: how many tokens, which blocks, and labels by attention."""

import math
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised
from samix.mixups.base import Hints
from samix.mixups.tokenmix import (
    TokenMix,
    count_partner_tokens,
    draw_block_tokens,
    draw_blocks,
    draw_single_tokens,
    token_shares,
    tokens_to_mask,
)
from samix.nn.zoo import build_encoder


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def maps(batch: int, grid: tuple[int, int] = (4, 4)) -> Tensor:
    attention = torch.rand(batch, *grid, generator=torch.Generator().manual_seed(9)) ** 3
    return attention / attention.sum(dim=(1, 2), keepdim=True)


def loop_tokens(height: int, width: int, wanted: int, uniform: Iterator[Sequence[float]]) -> Tensor:
    """One mask as TokenMix's code draws it; every try takes four uniform numbers."""
    tokens = torch.zeros(height, width, dtype=torch.bool)
    missing = wanted
    while missing > 0:
        for _ in range(10):
            area, aspect, row, column = next(uniform)
            area = 1 + area * (missing - 1)
            aspect = math.exp(math.log(1 / 0.3) * (1 - aspect) + math.log(0.3) * aspect)
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if h >= height or w >= width:
                continue
            top, left = math.floor(row * (height - h + 1)), math.floor(column * (width - w + 1))
            block = [(r, c) for r in range(top, top + h) for c in range(left, left + w)]
            new = [place for place in block if not tokens[place]]
            if 1 <= len(new) <= missing:
                break
        else:
            return tokens
        for place in new:
            tokens[place] = True
        missing -= len(new)
    return tokens


@pytest.mark.parametrize(
    ("lam", "count", "expected"),
    [
        (0.5, 196, 112),  # 98 + 14
        (0.0, 196, 196),
        (0.25, 196, 161),
        (0.96875, 196, 20),  # floor(6.125) + 14
        (1.0, 196, 0),
        (0.5, 64, 37),  # 32 + round(4.57)
        (0.5, 16, 9),
        (0.5, 49, 28),  # floor(24.5) + round(3.5)
    ],
)
def test_value_number_of_tokens(lam, count, expected):
    assert count_partner_tokens(torch.tensor([lam]), count).tolist() == [expected]


def test_value_number_of_tokens_per_pair():
    assert count_partner_tokens(torch.tensor([1.0, 0.5, 0.0]), 16).tolist() == [0, 9, 16]


@pytest.mark.parametrize("grid", [(14, 14), (4, 4), (6, 9), (2, 3), (1, 1)])
@pytest.mark.parametrize("batch", [1, 20])
def test_value_blocks_against_a_loop(grid, batch):
    """Mask i takes column i of every round of uniform numbers, until it is done."""
    wanted = count_partner_tokens(torch.linspace(0, 1, batch), grid[0] * grid[1])
    ours = draw_block_tokens(grid, wanted, torch.Generator().manual_seed(1))
    draw = torch.Generator().manual_seed(1)
    rounds = [torch.rand(4, batch, dtype=torch.float64, generator=draw) for _ in range(300)]
    for i in range(batch):
        uniform = iter([numbers[:, i].tolist() for numbers in rounds])
        assert torch.equal(ours[i], loop_tokens(*grid, int(wanted[i]), uniform))


def size_of(tokens: Tensor) -> Tensor:
    return tokens.sum(dim=(1, 2))


def edges_of(tokens: Tensor) -> Tensor:
    """Unequal neighbours: few for blocks, many for single tokens."""
    return tokens.diff(dim=1).abs().sum(dim=(1, 2)) + tokens.diff(dim=2).abs().sum(dim=(1, 2))


def test_value_the_original_grid_gets_106_to_112_tokens():
    tokens = draw_block_tokens((14, 14), torch.full((500,), 112), torch.Generator().manual_seed(0))
    sizes = size_of(tokens.long())
    assert sizes.max() == 112 and float((sizes >= 106).float().mean()) > 0.99
    assert float((sizes == 112).float().mean()) == pytest.approx(0.987, abs=0.02)


def test_value_a_block_is_one_rectangle_below_the_grids_sides():
    blocks = draw_blocks((6, 9), torch.full((400,), 30), torch.Generator().manual_seed(2))
    areas = []
    for block in blocks:
        rows, columns = block.any(dim=1), block.any(dim=0)
        assert torch.equal(block, rows[:, None] & columns[None])
        assert int(rows.sum()) < 6 and int(columns.sum()) < 9
        areas.append(int(block.sum()))
        if areas[-1]:
            height, width = int(rows.sum()), int(columns.sum())
            assert rows.nonzero()[-1] - rows.nonzero()[0] + 1 == height
            # Rounding each side by up to a half leaves the aspect within these bounds.
            assert (height - 0.5) / (width + 0.5) < 1 / 0.3 and (height + 0.5) / (width - 0.5) > 0.3
    assert 0 in areas, "an area of 30 at an aspect of 3 does not fit into 6 rows"
    assert blocks[:, 0].any() and blocks[:, -1].any() and blocks[:, :, 0].any() and blocks[:, :, -1].any()


def test_value_masks_side_by_side_have_their_own_numbers():
    tokens = draw_block_tokens((14, 14), torch.tensor([0, 1, 50, 196]), torch.Generator().manual_seed(0))
    sizes = size_of(tokens.long()).tolist()
    assert sizes[:2] == [0, 1] and 40 <= sizes[2] <= 50 and 150 <= sizes[3] <= 196


@pytest.mark.parametrize("grid", [(1, 1), (1, 5), (2, 2)])
def test_value_grids_too_small_for_blocks_end(grid):
    tokens = draw_block_tokens(grid, torch.tensor([grid[0] * grid[1]]), torch.Generator().manual_seed(0))
    assert tokens.shape == (1, *grid)


def test_value_random_tokens_are_exactly_so_many_anywhere():
    wanted = torch.tensor([0, 9] * 300 + [16] * 10)
    tokens = draw_single_tokens((4, 4), wanted, torch.Generator().manual_seed(0))
    assert torch.equal(size_of(tokens.long()), wanted)
    share = tokens[1:600:2].float().mean(dim=0)  # 9 of 16 at every place
    assert float((share - 9 / 16).abs().max()) < 4 * math.sqrt(9 / 16 * 7 / 16 / 300)


def test_value_random_masks_have_no_blocks():
    x, pairing, hints = (
        torch.rand(1, 3, 14, 14),
        Pairing(torch.tensor([0.5]), ring(1)),
        Hints(attention=maps(1, (14, 14))),
    )
    blocks, single = (
        [float(edges_of(TokenMix(random=which).mask(x, pairing, hints, None)[:, 0])) for _ in range(20)]
        for which in (False, True)
    )
    assert sum(single) > 1.5 * sum(blocks)


@pytest.mark.parametrize("size", [(8, 8), (14, 14), (12, 20), (9, 11)])
def test_value_pixels_follow_the_nearest_token(size):
    partner = torch.rand(2, 4, 5) < 0.5
    mask = tokens_to_mask(partner, torch.rand(2, 3, *size))
    for i in range(2):
        for h in range(size[0]):
            for w in range(size[1]):
                token = partner[i, math.floor(h * 4 / size[0]), math.floor(w * 5 / size[1])]
                assert float(mask[i, 0, h, w]) == (0.0 if token else 1.0)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("per_sample", [False, True])
def test_value_labels_against_a_loop(per_sample, normalized):
    x, attention, index = torch.rand(5, 3, 8, 8), maps(5), ring(5)
    lam = torch.tensor([0.1, 0.3, 0.5, 0.7, 1.0]) if per_sample else torch.tensor([0.5])
    mixed = TokenMix(normalized=normalized)(x, Pairing(lam, index), Hints(attention=attention))
    rows = mixed.soft_labels(torch.arange(5), 5)
    for i in range(5):
        mask, j = mixed.mask[i % len(mixed.mask), 0, ::2, ::2], int(index[i])  # tokens of 2 x 2 pixels
        a = sum(float(attention[i, r, c]) for r in range(4) for c in range(4) if mask[r, c] == 1)
        b = sum(float(attention[j, r, c]) for r in range(4) for c in range(4) if mask[r, c] == 0)
        assert float(mixed.pairing.lam[i]) == pytest.approx(a / (a + b), abs=1e-5)
        total = a + b if normalized else 1
        assert float(rows[i, i]) == pytest.approx(a / total, abs=1e-5)
        assert float(rows[i, j]) == pytest.approx(b / total, abs=1e-5)
    assert len(mixed.mask) == len(lam)
    assert (mixed.parents is None) == normalized


def test_value_weights_as_they_are_need_not_sum_to_one():
    mixed = TokenMix(normalized=False)(
        torch.rand(6, 3, 8, 8), Pairing(torch.tensor([0.5]), ring(6)), Hints(attention=maps(6))
    )
    assert (mixed.parents.share.sum(dim=1) - 1).abs().max() > 0.05
    assert mixed.parents.index.tolist() == [[i, (i - 1) % 6] for i in range(6)]
    with pytest.raises(ValueError, match="do not sum to 1"):
        mixed.labels(torch.arange(6))


def test_value_maps_are_normalised_and_empty_maps_weigh_nothing():
    attention = torch.stack([5 * maps(1)[0], torch.zeros(4, 4), maps(1)[0]])
    partner = torch.zeros(1, 4, 4, dtype=torch.bool)
    partner[0, :2] = True
    first, second = token_shares(partner, attention, torch.tensor([2, 0, 1]))
    top, bottom = float(maps(1)[0, :2].sum()), float(maps(1)[0, 2:].sum())
    assert first.tolist() == pytest.approx([bottom, 0, bottom], abs=1e-5)
    assert second.tolist() == pytest.approx([top, top, 0], abs=1e-5)


def test_value_without_any_attention_the_area_decides():
    mixed = TokenMix()(
        torch.rand(2, 3, 8, 8), Pairing(torch.tensor([0.5]), ring(2)), Hints(attention=torch.zeros(2, 4, 4))
    )
    assert mixed.pairing.lam.tolist() == pytest.approx([float(mixed.mask.mean())] * 2)


def test_value_even_attention_gives_the_area():
    even = torch.full((3, 14, 14), 1 / 196)
    mixed = TokenMix(normalized=False)(
        torch.rand(3, 3, 28, 28), Pairing(torch.tensor([0.5]), ring(3)), Hints(attention=even)
    )
    area = float(mixed.mask.mean())
    torch.testing.assert_close(mixed.parents.share, torch.tensor([[area, 1 - area]] * 3))


@pytest.mark.parametrize("per_sample", [False, True])
def test_value_draw_is_constant(per_sample):
    pairing = TokenMix(keep=0.3, per_sample=per_sample).draw(7, torch.Generator().manual_seed(0))
    assert pairing.lam.tolist() == pytest.approx([0.3] * (7 if per_sample else 1))
    assert sorted(pairing.index.tolist()) == list(range(7)) and (pairing.index != torch.arange(7)).all()


def test_value_draw_leaves_some_pairs_as_they_are():
    lam = TokenMix(prob=0.25, per_sample=True).draw(4000, torch.Generator().manual_seed(0)).lam
    assert set(lam.tolist()) == {0.5, 1.0}
    assert float((lam == 0.5).float().mean()) == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_lam_one_keeps_image_and_label(dtype, normalized):
    x, lam = torch.rand(4, 3, 8, 12).to(dtype), torch.tensor([1.0, 0.2, 1.0, 0.2])
    attention = maps(4)
    attention[0] = 0  # a map that says nothing
    mixed = TokenMix(normalized=normalized)(x, Pairing(lam, ring(4)), Hints(attention=attention))
    assert torch.equal(mixed.x[::2], x[::2]) and (mixed.pairing.lam[::2] == 1).all()
    assert mixed.x.dtype == dtype and mixed.mask.dtype == dtype and mixed.pairing.lam.dtype == torch.float32
    assert mixed.family().share[::2].tolist() == [[1.0, 0.0]] * 2
    assert all(not torch.equal(mixed.x[i], x[i]) for i in (1, 3))


@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_the_image_is_the_blend_of_the_pair(per_sample):
    x, index = torch.rand(5, 3, 12, 20), ring(5)
    policy = TokenMix(per_sample=per_sample)
    mixed = policy(x, Pairing(policy.draw(5).lam, index), Hints(attention=maps(5)))
    for i in range(5):
        mask = mixed.mask[i % len(mixed.mask)]
        assert set(mask.unique().tolist()) == {0.0, 1.0}
        assert torch.equal(mixed.x[i], torch.where(mask == 1, x[i], x[index[i]]))


def test_invariant_a_seed_fixes_the_result_and_nothing_is_changed_in_place():
    x, hints, policy = torch.rand(5, 3, 8, 8), Hints(attention=maps(5)), TokenMix(per_sample=True)
    before, copies = torch.get_rng_state(), (x.clone(), hints.attention.clone())

    def run(seed: int) -> Tensor:
        draw = torch.Generator().manual_seed(seed)
        return policy(x, policy.draw(5, draw), hints, draw).x

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(x, copies[0]) and torch.equal(hints.attention, copies[1])


def test_shape_a_batch_of_one_mixes_with_itself():
    x = torch.rand(1, 3, 8, 8)
    mixed = TokenMix()(x, TokenMix().draw(1), Hints(attention=maps(1)))
    assert torch.equal(mixed.x, x) and mixed.pairing.index.tolist() == [0]


def test_gradient_label_weights_carry_none():
    attention = maps(3).requires_grad_()
    mixed = TokenMix()(
        torch.rand(3, 3, 8, 8), Pairing(torch.tensor([0.5]), ring(3)), Hints(attention=attention)
    )
    assert not mixed.pairing.lam.requires_grad


@pytest.mark.parametrize("normalized", [True, False])
def test_value_inside_a_method(normalized):
    """The hint comes from the network that is trained; the loss is finite and reaches it."""
    encoder = build_encoder("deit-s", size=32, patch_size=8, depth=6, embed_dim=24, num_heads=3)
    method = Supervised(encoder, nn.Linear(24, 5), 5, objective=Objective(binary=not normalized))
    losses = Mixing(method, TokenMix(normalized=normalized))(
        torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 3])
    )
    losses.total.backward()
    assert losses.total.isfinite() and losses.lam.shape == (4,)
    assert method.head.weight.grad.abs().sum() > 0


def test_error_without_attention():
    with pytest.raises(ValueError, match="TokenMix needs attention"):
        TokenMix()(torch.rand(2, 3, 8, 8), Pairing(torch.tensor([0.5]), ring(2)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": 1.2}, r"mixup.keep must lie in \[0, 1\], got 1.2"),
        ({"keep": -0.1}, r"mixup.keep must lie in \[0, 1\], got -0.1"),
        ({"alpha": -1.0}, "mixup.alpha must be positive"),
    ],
)
def test_error_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        TokenMix(**settings)


def test_error_an_alpha_that_nothing_reads():
    with pytest.raises(ValueError, match=r"mixup.alpha must stay 1.*lam is the constant mixup.keep, got 0.2"):
        TokenMix(alpha=0.2)
