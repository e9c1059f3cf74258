"""Object retention against a slow loop, and for policies whose retention is known."""

from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from samix.core.mixed import Mixed, blend
from samix.core.pairing import Pairing
from samix.data.synthetic import draw_pictures
from samix.evaluate.retention import (
    Retention,
    best_retention,
    best_sweep,
    mixed_retention,
    object_retention,
    retention_sweep,
)
from samix.learned.shifting import balance
from samix.mixups import CutMix, MixUp


def slow_share(weight, objects):
    shares = []
    for picture in range(len(objects)):
        total, pixels = 0.0, 0
        for row in range(objects.shape[2]):
            for column in range(objects.shape[3]):
                if objects[picture, 0, row, column]:
                    total += float(weight[picture, 0, row, column])
                    pixels += 1
        shares.append(total / pixels)
    return torch.tensor(shares)


def random_objects(count=4):
    objects = torch.rand(count, 1, 6, 5) < 0.3
    objects[:, :, 2, 2] = True
    return objects


def keep_objects(x, pairing, objects):
    """A policy that knows the truth: the first image on its own object, its partner elsewhere."""
    mask = objects.float()
    return Mixed(blend(x, x[pairing.index], mask), mask, pairing)


def test_value_against_a_slow_loop():
    torch.manual_seed(0)
    mask, first, second = torch.rand(4, 1, 6, 5), random_objects(), random_objects()
    kept = object_retention(mask, first, second)
    assert_close(kept.first, slow_share(mask, first))
    assert_close(kept.second, slow_share(1 - mask, second))


def test_value_one_mask_serves_all_pairs():
    torch.manual_seed(0)
    mask, objects = torch.rand(1, 1, 6, 5), random_objects()
    kept = object_retention(mask, objects, objects)
    assert_close(kept.first, slow_share(mask.expand(4, -1, -1, -1), objects))


def test_value_summaries():
    kept = Retention(torch.tensor([0.2, 1.0]), torch.tensor([0.6, 0.0]))
    assert_close(kept.both, torch.tensor([0.4, 0.5]))
    assert_close(kept.weaker, torch.tensor([0.2, 0.0]))
    assert_close(kept.clearest, torch.tensor([0.6, 1.0]))


def test_value_partners_follow_the_index():
    objects = random_objects(3)
    index = torch.tensor([2, 0, 1])
    mask = torch.rand(3, 1, 6, 5)
    kept = mixed_retention(
        Mixed(torch.zeros(3, 3, 6, 5), mask, Pairing(torch.full((3,), 0.5), index)), objects
    )
    assert_close(kept.second, slow_share(1 - mask, objects[index]))


def test_error_empty_object_is_refused_by_position():
    objects = random_objects()
    empty = objects.clone()
    empty[2] = False
    with pytest.raises(ValueError, match="position 2 is empty"):
        object_retention(torch.rand(4, 1, 6, 5), objects, empty)


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.5, 1.0])
def test_value_mixup_keeps_exactly_lam(lam):
    row = retention_sweep(MixUp(), draw_pictures(24), [lam])[0]
    assert row.lam == lam
    assert row.first == pytest.approx(lam, abs=1e-6)
    assert row.second == pytest.approx(1 - lam, abs=1e-6)
    assert row.both == pytest.approx(0.5, abs=1e-6)
    assert row.weaker == pytest.approx(min(lam, 1 - lam), abs=1e-6)
    assert row.clearest == pytest.approx(max(lam, 1 - lam), abs=1e-6)


def test_value_blind_cutmix_keeps_half_of_both_but_little_of_the_weaker():
    generator = torch.Generator().manual_seed(0)
    rows = retention_sweep(
        lambda x, pairing: CutMix()(x, pairing, generator=generator), draw_pictures(960), [0.3, 0.5, 0.7]
    )
    assert all(row.both == pytest.approx(0.5, abs=0.02) for row in rows)
    assert all(row.weaker < 0.4 for row in rows)
    assert rows[0].first < rows[1].first < rows[2].first


def test_value_a_policy_that_sees_objects_shows_above_one_half():
    pictures = draw_pictures(60)
    row = retention_sweep(lambda x, p: keep_objects(x, p, pictures.masks), pictures, [0.5])[0]
    assert row.first == 1
    assert row.both > 0.7


def test_invariant_every_lam_sees_the_same_pairs_and_no_picture_meets_itself():
    seen = []

    def spy(x, pairing):
        seen.append(pairing.index)
        return MixUp()(x, pairing)

    retention_sweep(spy, draw_pictures(41), [0.2, 0.8], batch=20)
    assert [len(index) for index in seen] == [14, 14, 13] * 2
    assert all((index != torch.arange(len(index))).all() for index in seen)
    assert all(torch.equal(early, late) for early, late in zip(seen[:3], seen[3:], strict=True))


def test_value_best_against_every_mask():
    torch.manual_seed(0)
    first, second = torch.rand(5, 1, 2, 4) < 0.4, torch.rand(5, 1, 2, 4) < 0.4
    first[:, :, 0, 0], second[:, :, 1, 1] = True, True
    for shown in range(9):
        best = best_retention(first, second, torch.tensor([shown / 8]))
        for pair in range(5):
            found = []
            for pixels in combinations(range(8), shown):
                mask = torch.zeros(1, 1, 2, 4)
                mask.view(-1)[list(pixels)] = 1
                found.append(float(object_retention(mask, first[pair, None], second[pair, None]).both))
            assert float(best[pair]) == pytest.approx(max(found), abs=1e-6)


def test_value_best_has_one_lam_per_pair_and_shows_a_pixel_in_part():
    first, second = random_objects(), random_objects()
    lam = torch.tensor([0.1, 0.25, 0.5, 0.83])
    best = best_retention(first, second, lam)
    for pair in range(4):
        assert_close(best[pair], best_retention(first[pair, None], second[pair, None], lam[pair, None])[0])
    left, right = torch.zeros(1, 1, 1, 2, dtype=torch.bool), torch.zeros(1, 1, 1, 2, dtype=torch.bool)
    left[..., 0], right[..., 1] = True, True
    assert best_retention(left, right, torch.tensor([0.25])).item() == pytest.approx(0.75)


def test_invariant_no_mask_of_mean_lam_keeps_more_than_the_best():
    torch.manual_seed(0)
    objects, index = random_objects(8), torch.arange(8).roll(1)
    for lam in (0.2, 0.5, 0.9):
        logits = 5 * torch.randn(8, 1, 6, 5) + 3 * (objects.float() - objects[index].float())
        mask = balance(logits, torch.tensor([lam]))
        both = object_retention(mask, objects, objects[index]).both
        assert (both <= best_retention(objects, objects[index], torch.tensor([lam])) + 1e-4).all()


def test_value_the_best_of_a_sweep_sees_the_same_pairs():
    pictures, seen = draw_pictures(41), []

    def spy(x, pairing):
        seen.append(pairing.index)
        return MixUp()(x, pairing)

    retention_sweep(spy, pictures, [0.3], batch=20, seed=3)
    parts = pictures.masks.tensor_split(3)
    best = [best_retention(p, p[index], torch.tensor([0.3])) for p, index in zip(parts, seen, strict=True)]
    found = best_sweep(pictures, [0.3, 0.02], batch=20, seed=3)
    assert found[0] == pytest.approx(float(torch.cat(best).mean()))
    assert found[0] > found[1] > 0.5


def test_error_one_picture_has_no_partner():
    with pytest.raises(ValueError, match="at least 2 pictures"):
        retention_sweep(MixUp(), draw_pictures(1), [0.5])
