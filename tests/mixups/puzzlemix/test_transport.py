"""PuzzleMix's transport: against its cost matrix written out, and the official plans."""

import pytest
import torch

from samix.mixups.puzzlemix.energy import block_saliency
from samix.mixups.puzzlemix.transport import move_blocks, transport_plan


def problem(grid, batch=6, seed=0, peak=3.0):
    """Saliency that sums to 1 with few peaks, and which blocks show."""
    draw = torch.Generator().manual_seed(seed)
    saliency = (peak * torch.randn(batch, *grid, generator=draw)).exp()
    saliency = saliency / saliency.sum(dim=(1, 2), keepdim=True)
    shown = (torch.rand(batch, *grid, generator=draw) > 0.5).float()
    return saliency, shown


def loop_plan(saliency, shown, epsilon):
    """Winners of the last round of one picture: {target: source}."""
    rows, columns = saliency.shape
    places = [(r, c) for r in range(rows) for c in range(columns)]
    cost = []
    for r, c in places:
        near = [((r - y) / (rows - 1)) ** 2 + ((c - x) / (columns - 1)) ** 2 for y, x in places]
        worth = [float(saliency[r, c]) * float(shown[y, x] > 0) for y, x in places]
        cost.append([epsilon * d - u for d, u in zip(near, worth, strict=True)])
    winners = {}
    for _ in range(max(rows, columns)):
        picks = [min(range(len(places)), key=lambda r, row=row: (round(row[r], 12), r)) for row in cost]
        winners = {}
        for p, r in enumerate(picks):
            if cost[p][r] < 0 and (r not in winners or cost[p][r] < cost[winners[r]][r]):
                winners[r] = p
        for p, r in enumerate(picks):
            if winners.get(r) != p:
                cost[p][r] += 1
    return winners


@pytest.mark.parametrize("epsilon", [0.1, 0.8])
@pytest.mark.parametrize("grid", [(2, 2), (4, 4), (3, 5), (6, 6)])
def test_value_against_the_cost_matrix(grid, epsilon):
    moved = 0
    for peak in (1.0, 3.0):
        saliency, shown = problem(grid, peak=peak)
        plan = transport_plan(saliency, shown, epsilon)
        for i in range(len(plan)):
            winners = loop_plan(saliency[i].double(), shown[i], epsilon)
            for target, visible in enumerate(shown[i].flatten().bool().tolist()):
                assert visible <= (target in winners), "a shown target is empty"
                assert int(plan[i, target]) == winners.get(target, target)
                moved += int(plan[i, target]) != target
    assert moved >= 1


@pytest.mark.parametrize("grid", [(4, 4), (6, 10), (16, 16)])
def test_invariant_no_block_shows_twice(grid):
    saliency, shown = problem(grid, batch=20)
    plan = transport_plan(saliency, shown)
    for sources, visible in zip(plan, shown.flatten(1).bool(), strict=True):
        assert len(sources[visible].unique()) == int(visible.sum())


def test_invariant_transport_shows_more_saliency():
    saliency, shown = problem((8, 8), batch=20)
    moved = saliency.flatten(1).gather(1, transport_plan(saliency, shown))
    before, after = ((values * shown.flatten(1)).sum(dim=1) for values in (saliency.flatten(1), moved))
    assert (after >= before - 1e-6).all() and float((after - before).mean()) > 0.05


@pytest.mark.parametrize("saliency", ["peaks", "flat", "zero"])
def test_value_an_image_that_shows_everywhere_stays(saliency):
    maps = {"peaks": problem((4, 6))[0], "flat": torch.full((6, 4, 6), 1 / 24), "zero": torch.zeros(6, 4, 6)}
    plan = transport_plan(maps[saliency], torch.ones(6, 4, 6))
    assert torch.equal(plan, torch.arange(24).expand(6, 24))


def test_value_a_shown_target_without_saliency_keeps_its_block():
    """The official code turns it black."""
    shown = torch.ones(1, 4, 4)
    shown[0, 0] = 0
    assert torch.equal(transport_plan(torch.zeros(1, 4, 4), shown)[0], torch.arange(16))


def test_value_a_hidden_peak_moves_to_the_nearest_place_that_shows():
    saliency, shown = torch.full((1, 4, 4), 0.01), torch.zeros(1, 4, 4)
    saliency[0, 1, 0], shown[0, :, 2:] = 0.85, 1
    plan = transport_plan(saliency, shown)[0].view(4, 4)
    assert int(plan[1, 2]) == 4
    rest = torch.arange(16).view(4, 4)
    assert (plan == rest).sum() == 15, "the others lie too far away, or have no place left"


def test_value_a_peak_too_far_away_stays_hidden():
    saliency, shown = torch.full((1, 4, 4), 0.001), torch.zeros(1, 4, 4)
    saliency[0, 1, 0], shown[0, :, 3:] = 0.7, 1
    assert torch.equal(transport_plan(saliency, shown)[0], torch.arange(16))  # 0.8 > 0.7
    assert int(transport_plan(saliency, shown, 0.6)[0, 7]) == 4  # 0.6 < 0.7


def test_value_equal_askers_go_in_reading_order():
    """Two hidden peaks, equally far from one poor place: the first gets it."""
    saliency, shown = torch.full((1, 3, 3), 0.001), torch.zeros(1, 3, 3)
    saliency[0, 0, 1] = saliency[0, 2, 1] = 0.45
    shown[0, 1, 1] = 1
    assert int(transport_plan(saliency, shown)[0, 4]) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("grid", [(2, 2), (3, 4), (6, 10)])
def test_value_moving_against_a_loop(grid, dtype):
    planes = (torch.rand(3, 2, 12, 20) * 9).to(dtype)
    plan = torch.stack([torch.randperm(grid[0] * grid[1]) for _ in range(3)])
    moved = move_blocks(planes, plan, grid)
    height, width = 12 // grid[0], 20 // grid[1]
    for i in range(3):
        for y in range(12):
            for x in range(20):
                source = int(plan[i, (y // height) * grid[1] + x // width])
                from_y = source // grid[1] * height + y % height
                from_x = source % grid[1] * width + x % width
                assert torch.equal(moved[i, :, y, x], planes[i, :, from_y, from_x])


@pytest.mark.parametrize("run", ["cifarcfg", "b4_trans"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_golden_pictures(golden, seed, run):
    """Official masks give the official plans where images show, and the official pictures to the bit."""
    record, key = golden("g_puzzlemix_32"), f"seed{seed}/{run}"
    x, index, shares = record["img"], record[f"{key}/index"], record[f"{key}/graphcut_mask"].float()
    side = int(record[f"{key}/transport_plan1"].shape[1] ** 0.5)
    finer, grid = side // shares.shape[1], (side, side)
    shown = shares.repeat_interleave(finer, dim=1).repeat_interleave(finer, dim=2)
    saliency = block_saliency(record["saliency"], grid)
    plans = transport_plan(saliency, shown), transport_plan(saliency[index], 1 - shown)
    for plan, number, visible in zip(plans, (1, 2), (shown > 0, shown < 1), strict=True):
        official = record[f"{key}/transport_plan{number}"].argmax(dim=1)  # [B, source, target]
        assert torch.equal(plan[visible.flatten(1)], official[visible.flatten(1)])
    mask = shares.repeat_interleave(32 // shares.shape[1], 1).repeat_interleave(32 // shares.shape[2], 2)[
        :, None
    ]
    first, second = move_blocks(x, plans[0], grid), move_blocks(x[index], plans[1], grid)
    assert torch.equal(mask * first + (1 - mask) * second, record[f"{key}/out"])
