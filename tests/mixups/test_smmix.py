"""SMMix: boxes by attention, against a loop over all of them."""

import pytest
import torch
from torch import Tensor

from samix.core.pairing import Pairing
from samix.mixups import Hints, SMMix
from samix.mixups.smmix import find_boxes, to_pixels, token_sides

PATCH = 4
GRID = (6, 8)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(batch: int = 5) -> Tensor:
    return torch.rand(batch, 3, PATCH * GRID[0], PATCH * GRID[1], generator=seeded(3))


def attention(batch: int = 5) -> Tensor:
    drawn = torch.rand(batch, *GRID, generator=seeded(4))
    return drawn / drawn.sum(dim=(1, 2), keepdim=True)


def slow_box(seen: Tensor, height: int, width: int, most: bool) -> tuple[int, int]:
    """The upper left token of the box that gathers most or least, of all places it may have."""
    sums = {
        (top, left): float(seen[top : top + height, left : left + width].double().sum())
        for top in range(GRID[0] - height + 1)
        for left in range(GRID[1] - width + 1)
    }
    return (max if most else min)(sums, key=sums.get)


@pytest.mark.parametrize("lam", [[0.5], [0.0, 0.3, 0.75, 0.9, 1.0]], ids=["one lam", "lam per sample"])
def test_value_against_a_loop(lam):
    x, seen, index = images(), attention(), torch.tensor([2, 0, 4, 1, 3])
    expected, shares = x.clone(), []
    for i, j in enumerate(index.tolist()):
        tau = (1 - lam[i % len(lam)]) ** 0.5
        height, width = int(tau * GRID[0] + 1e-4), int(tau * GRID[1] + 1e-4)
        if height and width:
            top, left = slow_box(seen[i], height, width, most=False)
            from_top, from_left = slow_box(seen[j], height, width, most=True)
            for row in range(PATCH * height):
                for column in range(PATCH * width):
                    pixel = x[j, :, PATCH * from_top + row, PATCH * from_left + column]
                    expected[i, :, PATCH * top + row, PATCH * left + column] = pixel
        shares.append(1 - height * width / (GRID[0] * GRID[1]))
    mixed = SMMix()(x, Pairing(torch.tensor(lam), index), Hints(attention=seen))
    assert torch.equal(mixed.x, expected)
    torch.testing.assert_close(mixed.pairing.lam, torch.tensor(shares))


def test_value_the_object_of_the_partner_covers_the_background_of_the_first_image():
    seen = torch.full((2, *GRID), 0.01)
    seen[0, :3, :4], seen[1, 3:, 4:] = 1.0, 1.0
    marked = images(2)
    mixed = SMMix()(marked, Pairing(torch.tensor([0.75]), torch.tensor([1, 0])), Hints(attention=seen))
    rows, columns = (PATCH * side for side in (3, 4))
    assert torch.equal(mixed.x[0, :, :rows, :columns], marked[0, :, :rows, :columns])  # its object is whole
    hidden = mixed.mask[0, 0] == 0
    assert int(hidden.sum()) == rows * columns
    assert torch.equal(mixed.x[0][:, hidden], marked[1, :, rows:, columns:].flatten(1))  # the partner's, too


def test_value_targets_per_pixel_move_alike():
    x, pairing = images(), Pairing(torch.tensor([0.6]), torch.arange(5).roll(1))
    mixed = SMMix()(x, pairing, Hints(attention=attention()))
    assert torch.equal(mixed.dense(x), mixed.x)
    classes = (1000 * x[:, 0]).long()
    assert torch.equal(mixed.dense(classes), (1000 * mixed.x[:, 0]).long())


def test_value_sides_are_whole_tokens():
    lam = torch.tensor([1 - (side / 14) ** 2 for side in range(15)])
    assert token_sides(lam, (14, 14)).tolist() == [[side, side] for side in range(15)]
    assert token_sides(torch.tensor([0.75]), GRID).tolist() == [[3, 4]]


def test_value_ties_go_in_reading_order():
    found = find_boxes(torch.ones(1, *GRID), torch.tensor([[2, 3]]), most=True)
    assert (int(found.rows.start), int(found.columns.start)) == (0, 0)


def test_shape_pictures_that_the_grid_does_not_divide():
    box = find_boxes(torch.rand(3, 4, 4, generator=seeded()), torch.tensor([[2, 2]] * 3), most=True)
    pixels = to_pixels(box, (4, 4), (10, 15))
    assert (pixels.rows.start + pixels.rows.length).max() <= 10
    x = torch.rand(3, 3, 10, 15, generator=seeded())
    hints = Hints(attention=torch.rand(3, 4, 4, generator=seeded()))
    assert SMMix()(x, Pairing(torch.tensor([0.6]), torch.tensor([1, 2, 0])), hints).x.isfinite().all()


def test_value_drawn_sides_lie_in_their_range():
    tau = (1 - SMMix(per_sample=True).draw(500, seeded()).lam).sqrt()
    assert 0.25 <= tau.min() < 0.27 and 0.73 < tau.max() <= 0.75


def test_error_without_attention():
    with pytest.raises(ValueError, match="SMMix needs attention"):
        SMMix()(images(), Pairing(torch.tensor([0.4]), torch.arange(5).roll(1)))
