"""SwAV: swapped codes against a loop, unit prototypes, and the store for small batches."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.small_crops import SmallCrops, pack, unpack
from samix.losses.codes import sinkhorn_codes
from samix.methods.around.self_mixing import SelfMixing
from samix.methods.ssl.base import Terms, views_of
from samix.methods.ssl.swav import SwAV, SwAVConfig
from samix.mixups import MixUp


def loop_codes(scores: Tensor, epsilon: float = 0.05, rounds: int = 3) -> list[list[float]]:
    """Sinkhorn: prototypes get equal shares of the samples, then every sample sums to 1."""
    batch, prototypes = scores.shape
    code = [[math.exp(float(s) / epsilon) for s in row] for row in scores.detach().double()]
    for _ in range(rounds):
        share = [sum(row[p] for row in code) * prototypes for p in range(prototypes)]
        code = [[row[p] / share[p] for p in range(prototypes)] for row in code]
        code = [[value / sum(row) / batch for value in row] for row in code]
    return [[value * batch for value in row] for row in code]


def loop_cross_entropy(codes: list[list[float]], scores: Tensor, tau: float = 0.1) -> float:
    total = 0.0
    for code, row in zip(codes, scores.tolist(), strict=True):
        normaliser = math.log(sum(math.exp(s / tau) for s in row))
        total -= sum(c * (s / tau - normaliser) for c, s in zip(code, row, strict=True))
    return total / len(codes)


def scores_of(method: SwAV, x: Tensor) -> list[Tensor]:
    z = F.normalize(method.branch(x), dim=1)
    return list((z @ method.prototypes.weight.T).chunk(2))


@pytest.mark.parametrize("count", [3, 7], ids=["fewer pictures than prototypes", "more"])
def test_value_clean_loss_against_a_loop(selfsup, two_views, count):
    method, (x, index) = selfsup("swav"), two_views(count)
    first, second = scores_of(method, x)
    expected = loop_cross_entropy(loop_codes(second), first) + loop_cross_entropy(loop_codes(first), second)
    assert method(x, index).encoder.item() == pytest.approx(expected / 2, rel=1e-3)


def test_value_codes_are_the_other_views_and_sum_to_one(selfsup, two_views):
    method, (x, index) = selfsup("swav"), two_views(3)
    first, second = scores_of(method, x)
    seen = method.observe(*views_of(x, index))
    for code, scores in zip(seen.targets, (second, first), strict=True):
        torch.testing.assert_close(code, torch.tensor(loop_codes(scores)), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(code.sum(dim=1), torch.ones(3))
        assert not code.requires_grad


def lengths(method: SwAV) -> Tensor:
    return method.prototypes.weight.detach().norm(dim=1)


def test_value_prototypes_are_unit_vectors_after_every_step(selfsup, two_views):
    method = selfsup("swav")
    torch.testing.assert_close(lengths(method), torch.ones(6))
    optimizer = torch.optim.SGD(method.parameters(), lr=1.0)
    for step in range(2):
        method(*two_views(seed=step)).total.backward()
        optimizer.step()
        assert (lengths(method) - 1).abs().max() > 1e-3
        method.after_step(0.5)
        torch.testing.assert_close(lengths(method), torch.ones(6))


def test_gradient_prototypes_are_frozen_at_first(selfsup, two_views, gradients):
    method = selfsup("swav", freeze=0.25)
    for progress, frozen in ((0.0, True), (0.24, True), (0.25, False), (1.0, False)):
        found = gradients(method(*two_views(), progress=progress).encoder, method)
        assert (found.pop("prototypes.weight") is None) == frozen
        assert all(gradient is not None for gradient in found.values())


def counts(method: SwAV) -> list[int]:
    return [int(store.count) for store in method.stores]


def test_value_the_store_fills_late_and_serves_once_full(selfsup, two_views):
    method = selfsup("swav", stored=8, store_from=0.5)
    for step, (progress, stored) in enumerate([(0.49, 0), (0.5, 4), (0.6, 8)]):
        x, index = two_views(4, seed=step)
        expected = [sinkhorn_codes(scores) for scores in scores_of(method, x)]
        method.begin(progress)
        codes = method.observe(*views_of(x, index)).targets
        for found, code in zip(codes, reversed(expected), strict=True):
            torch.testing.assert_close(found, code, rtol=1e-3, atol=1e-4)
        assert counts(method) == [stored, stored]

    x, index = two_views(4, seed=9)
    stores, everyone = [store.read() for store in method.stores], []
    for keys, scores in zip(stores, scores_of(method, x), strict=True):
        everyone.append(sinkhorn_codes(torch.cat([keys @ method.prototypes.weight.T, scores]))[8:])
    codes = method.observe(*views_of(x, index)).targets
    for found, code in zip(codes, reversed(everyone), strict=True):
        torch.testing.assert_close(found, code, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(found.sum(dim=1), torch.ones(4))
    assert not torch.allclose(everyone[0], sinkhorn_codes(scores_of(method, x)[0]), atol=1e-2)


def test_value_stores_hold_the_latest_embeddings_of_their_view(selfsup, two_views):
    method, (x, index) = selfsup("swav", stored=4, store_from=0.0), two_views(4)
    z = F.normalize(method.branch(x), dim=1).detach().chunk(2)
    method(x, index)
    for store, rows in zip(method.stores, z, strict=True):
        torch.testing.assert_close(store.read(), rows)


def test_value_evaluation_stores_nothing(selfsup, two_views):
    method = selfsup("swav", stored=8, store_from=0.0).eval()
    method(*two_views())
    assert counts(method) == [0, 0]


def test_value_without_a_store_there_is_none(selfsup):
    assert len(selfsup("swav").stores) == 0
    assert not any(name.startswith("stores") for name in selfsup("swav").state_dict())


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [("tau", 0.0, "be positive"), ("prototypes", 1, "be at least 2"), ("epsilon", 0.0, "be positive")],
)
def test_error_bad_settings_are_refused_by_name(field, value, allowed):
    with pytest.raises(ValueError, match=rf"method\.{field} must {allowed}, got {value}"):
        SwAVConfig(**{field: value})


def with_crops(method: SwAV, count: int = 3) -> Tensor:
    """The method takes so many crops of 8 px; small crops of 3 pictures in canvases of 16 px, packed."""
    method.crops = SmallCrops(count=count, size=8)
    return pack([torch.rand(3, 3, 8, 8) for _ in range(count)], 16)


@pytest.mark.parametrize("count", [1, 6])
def test_value_small_crops_predict_the_codes_of_both_views(selfsup, two_views, count):
    """L = sum_a 1 / (V - 1) sum_{v != a} CE(Q_a, s_v) / 2 over V = 2 + count views and crops."""
    method, (x, index) = selfsup("swav"), two_views(3)
    canvases = with_crops(method, count)
    whole = scores_of(method, x)
    crops = list(
        F.linear(F.normalize(method.branch(torch.cat(unpack(canvases, method.crops, 3))), dim=1),
                 method.prototypes.weight).chunk(count)
    )  # fmt: skip
    codes, expected = [loop_codes(scores) for scores in whole], 0.0
    for a in (0, 1):
        others = [whole[1 - a], *crops]
        expected += sum(loop_cross_entropy(codes[a], scores) for scores in others) / len(others) / 2
    assert method(torch.cat([x, canvases]), index).encoder.item() == pytest.approx(expected, rel=1e-3)


def test_value_small_crops_are_not_mixed(selfsup, two_views):
    """The mixed term is that of two views; crops only join the clean loss."""
    method, (x, index) = selfsup("swav").eval(), two_views(3)
    torch.manual_seed(2)
    plain = SelfMixing(method, MixUp(), Terms(base=0.0))(x, index).encoder
    canvases = with_crops(method)
    torch.manual_seed(2)
    mixed = SelfMixing(method, MixUp(), Terms(base=0.0))(torch.cat([x, canvases]), index).encoder
    torch.testing.assert_close(mixed, plain)
    both = SelfMixing(method, MixUp())(torch.cat([x, canvases]), index).encoder
    assert not torch.equal(both, plain) and both.isfinite()


def test_error_canvases_of_another_number(selfsup, two_views):
    method, (x, index) = selfsup("swav"), two_views(3)
    canvases = with_crops(method)
    with pytest.raises(ValueError, match=r"3 small crops of 3 pictures come in 3 canvases of 16 px .*got 2"):
        method(torch.cat([x, canvases[:2]]), index)
