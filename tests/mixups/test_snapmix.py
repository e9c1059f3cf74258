"""SnapMix: stretched boxes and semantic label weights, against loops."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.pairing import Pairing, draw_lam
from samix.mixups import Hints, SnapMix
from samix.mixups.cutmix import draw_box
from samix.mixups.regions import Interval, Region
from samix.mixups.snapmix import clip_interval, draw_region, semantic_map, share_inside

SIZE = (12, 20)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(batch: int = 5) -> Tensor:
    return torch.rand(batch, 3, *SIZE, generator=seeded(3))


def cams(batch: int = 5) -> Tensor:
    return torch.randn(batch, 3, 5, generator=seeded(4))


def ring(batch: int = 5) -> Tensor:
    return torch.arange(batch).roll(1)


def cut(box: tuple[int, int, int, int]) -> tuple[slice, slice]:
    """Rows and columns of one of CutMix's boxes, cut off at the border."""
    top, bottom, left, right = box
    return slice(max(top, 0), min(bottom, SIZE[0])), slice(max(left, 0), min(right, SIZE[1]))


def slow(
    x: Tensor, activation: Tensor, pairing: Pairing, seed: int
) -> tuple[Tensor, list[float], list[float]]:
    """Image by image, with slices and torch's own interpolation, on the same draws."""
    draw, count = seeded(seed), len(pairing.lam)
    boxes = draw_box(SIZE, pairing.lam, draw)
    others = draw_box(SIZE, draw_lam(count, 5.0, draw), draw)
    mixed, first, second = x.clone(), [], []
    for i, j in enumerate(pairing.index.tolist()):
        n = i % count
        into, out_of = (cut(tuple(int(part[n]) for part in each)) for each in (boxes, others))
        target, patch = mixed[i][:, *into], x[j][:, *out_of]
        if target.numel() == 0 or patch.numel() == 0:
            first.append(1.0)
            second.append(0.0)
            continue
        target[:] = F.interpolate(patch[None], size=target.shape[1:], mode="bilinear", align_corners=True)[0]
        shares = []
        for image, box in ((i, into), (j, out_of)):
            planes = activation[image][None, None]
            large = F.interpolate(planes, size=SIZE, mode="bilinear", align_corners=False)[0, 0]
            large = large - large.min()
            shares.append(float(large[box].sum() / large.sum()))
        first.append(1 - shares[0])
        second.append(shares[1])
    return mixed, first, second


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_value_against_slices(seed, per_sample):
    x, activation = images(), cams()
    lam = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0] if per_sample else [0.3])
    pairing = Pairing(lam, ring())
    expected, first, second = slow(x, activation, pairing, seed)
    mixed = SnapMix(normalized=False)(x, pairing, Hints(activation=activation), seeded(seed))
    torch.testing.assert_close(mixed.x, expected)
    torch.testing.assert_close(mixed.parents.share, torch.tensor([first, second]).T)
    assert torch.equal(mixed.parents.index, torch.stack([torch.arange(5), ring()], dim=1))
    weights = [a / (a + b) for a, b in zip(first, second, strict=True)]
    torch.testing.assert_close(mixed.pairing.lam, torch.tensor(weights))


def test_value_normalized_weights_sum_to_one_and_keep_their_ratio():
    x, pairing, hints = images(), Pairing(torch.tensor([0.4]), ring()), Hints(activation=cams())
    raw, normal = (SnapMix(normalized=flag)(x, pairing, hints, seeded(1)) for flag in (False, True))
    assert normal.parents is None and torch.equal(raw.x, normal.x)
    assert not torch.allclose(raw.parents.share.sum(dim=1), torch.ones(5), atol=1e-2)
    torch.testing.assert_close(normal.pairing.lam, raw.parents.share[:, 0] / raw.parents.share.sum(dim=1))


def test_value_labels_follow_the_object_and_not_the_area():
    """All evidence of the first image stands in its box, all of the partner's outside of the other one."""
    pairing = Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    for seed in range(8):
        draw = seeded(seed)
        target = draw_region(SIZE, pairing.lam, draw)
        source = draw_region(SIZE, draw_lam(1, 5.0, draw), draw)
        evidence = torch.stack([target.inside(SIZE)[0], ~source.inside(SIZE)[0]]).float()
        mixed = SnapMix(normalized=False)(images(2), pairing, Hints(activation=evidence), seeded(seed))
        assert mixed.parents.share[0].tolist() == pytest.approx([0.0, 0.0], abs=1e-5)
        assert float(mixed.pairing.lam[0]) == pytest.approx(float(mixed.mask[0].mean()), abs=0.5)


def test_value_a_flat_map_weighs_by_area():
    x, pairing = images(2), Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    mixed = SnapMix(normalized=False)(x, pairing, Hints(activation=torch.full((2, 3, 5), 7.0)), seeded(2))
    assert float(mixed.parents.share[0, 0]) == pytest.approx(float(mixed.mask.mean()), abs=1e-6)
    assert semantic_map(torch.zeros(1, 3, 5), SIZE).unique().tolist() == pytest.approx([1 / 240])


def test_value_targets_per_pixel_are_stretched_alike():
    x, pairing = images(), Pairing(torch.tensor([0.4]), ring())
    mixed = SnapMix()(x, pairing, Hints(activation=cams()), seeded(1))
    torch.testing.assert_close(mixed.dense(x), mixed.x)
    classes = (x[:, 0] > 0.5).long()
    inside = mixed.mask[0, 0] == 0
    dense = mixed.dense(classes)
    assert dense.dtype == classes.dtype and torch.equal(dense[:, ~inside], classes[:, ~inside])
    near = mixed.dense(classes.float()[:, None].expand(-1, 3, -1, -1))[:, 0, inside]
    assert ((dense[:, inside] - near).abs() < 1).all()  # the nearest class is one of those blended


def test_value_clipping_and_sums():
    found = clip_interval(torch.tensor([-2, 4, 5]), torch.tensor([2, 6, 13]), 10)
    assert found.start.tolist() == [0, 4, 5] and found.length.tolist() == [2, 2, 5]
    region = Region(
        Interval(torch.tensor([1]), torch.tensor([2])), Interval(torch.tensor([0]), torch.tensor([3]))
    )
    seen = torch.arange(40.0).view(2, 4, 5)
    assert share_inside(seen, region).tolist() == [float(seen[i, 1:3, :3].sum()) for i in range(2)]


def test_gradient_labels_carry_none():
    activation = cams().requires_grad_()
    mixed = SnapMix()(images(), Pairing(torch.tensor([0.4]), ring()), Hints(activation=activation), seeded())
    assert not mixed.pairing.lam.requires_grad


def test_error_without_activation():
    with pytest.raises(ValueError, match="SnapMix needs activation"):
        SnapMix()(images(), Pairing(torch.tensor([0.4]), ring()))
