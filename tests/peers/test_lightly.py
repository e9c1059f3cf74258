"""What lightly's own tests ask of NT-Xent, SwAV's loss and the cosine, in samix's words.

Differs: `nt_xent_per_sample` adds both directions, lightly takes their mean; SwAV has two views and no
smaller crops, so further crops are tried on the loss alone; methods refuse a negative temperature. Rows of
other processes are tested in `tests/losses/test_contrastive_in_batch.py`, two real processes in
`tests/core/test_distributed.py`.
"""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.losses.codes import sinkhorn_codes, swapped_per_sample
from samix.losses.contrastive import info_nce, nt_xent_per_sample
from samix.losses.regression import cosine, simsiam_per_sample
from samix.methods.ssl import METHODS
from samix.nn.key_queue import Queue


def nt_xent(first: Tensor, second: Tensor, tau: float) -> float:
    """The mean over pictures and both directions, as lightly has it."""
    own = torch.arange(len(first))
    first, second = F.normalize(first, dim=1), F.normalize(second, dim=1)
    return nt_xent_per_sample(first, second, own, own, tau).mean().item() / 2


def loop_nt_xent(first: Tensor, second: Tensor, tau: float) -> float:
    """Every view against all other views of all pictures, number by number."""
    rows = [row.tolist() for row in torch.cat([first, second]).double()]
    n, total = len(first), 0.0

    def similarity(a: list[float], b: list[float]) -> float:
        product = sum(x * y for x, y in zip(a, b, strict=True))
        return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))

    for i, row in enumerate(rows):
        scores = {j: similarity(row, other) / tau for j, other in enumerate(rows) if j != i}
        total -= scores[(i + n) % (2 * n)] - math.log(sum(math.exp(score) for score in scores.values()))
    return total / (2 * n)


@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dim", [1, 2, 16, 64])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_value_nt_xent_against_a_loop_and_in_both_orders(count, dim, tau):
    first, second = torch.randn(count, dim), torch.randn(count, dim)
    found = nt_xent(first, second, tau)
    assert found == pytest.approx(loop_nt_xent(first, second, tau), abs=1e-4)
    assert found == pytest.approx(nt_xent(second, first, tau), abs=1e-5)


def on_one_ray(count: int) -> Tensor:
    """Vectors that all point to the same side."""
    length = torch.rand(count, 1) + 0.1
    return torch.cat([length, 2 * length], dim=1)


@pytest.mark.parametrize("tau", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("count", [1, 2, 8, 16])
def test_value_views_that_nobody_can_tell_apart_cost_a_guess(count, tau):
    """One of the 2 n - 1 other views is the right one."""
    assert nt_xent(on_one_ray(count), on_one_ray(count), tau) == pytest.approx(
        math.log(2 * count - 1), abs=1e-4
    )


@pytest.mark.parametrize("tau", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("length", [1, 2, 8, 15, 16, 17])
@pytest.mark.parametrize("count", [1, 2, 8, 16])
def test_value_so_do_keys_of_a_full_queue(count, length, tau):
    """The key, or one of the queue's: any length of it, whether batches divide it or not."""
    queue, keys = Queue(length, 2), F.normalize(on_one_ray(count), dim=1)
    while not queue.is_full:
        queue.push(keys)
    found = info_nce(F.normalize(on_one_ray(count), dim=1), keys, queue.read(), tau)
    assert found.item() == pytest.approx(math.log(length + 1), abs=1e-4)


@pytest.mark.parametrize("tau", [0.5, -1.0])
@pytest.mark.parametrize("dim", [1, 32])
def test_invariant_the_order_of_views_does_not_matter(dim, tau):
    for count in range(1, 20):
        first, second = torch.randn(count, dim), torch.randn(count, dim)
        assert nt_xent(first, second, tau) == pytest.approx(nt_xent(second, first, tau), abs=1e-4)


@pytest.mark.parametrize("name", ["simclr", "moco-v2", "swav"])
def test_error_a_negative_temperature_of_a_method(name):
    with pytest.raises(ValueError, match=r"method\.tau must be positive, got -1\.0"):
        METHODS[name](tau=-1.0)


def test_value_a_queue_serves_any_batch():
    queue = Queue(64, 32)
    for count in range(1, 20):
        query, key = (F.normalize(torch.randn(count, 32), dim=1) for _ in range(2))
        assert info_nce(query, key, queue.read(), 0.5).isfinite()
        queue.push(key)


def swav(high: list[Tensor], low: list[Tensor], rounds: int, stored: Tensor | None = None) -> float:
    """The codes of either large view are the targets of all other views."""
    losses = []
    for number, scores in enumerate(high):
        everyone = scores if stored is None else torch.cat([stored, scores])
        codes = sinkhorn_codes(everyone, rounds=rounds)[-len(scores) :]
        others = [view for place, view in enumerate(high) if place != number] + low
        losses += [swapped_per_sample(view, codes).mean() for view in others]
    return torch.stack(losses).mean().item()


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("crops", range(6))
def test_value_views_that_agree_cost_next_to_nothing(crops, rounds):
    n = 32
    for stored in (None, torch.eye(128, n)):
        assert swav([torch.eye(n)] * 2, [torch.eye(n)] * crops, rounds, stored) < 0.5
    assert swav([torch.eye(n, 1)] * 2, [torch.eye(n, 1)] * crops, rounds) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("crops", range(6))
def test_value_a_batch_of_one_picture(crops, rounds):
    assert 0 <= swav([torch.eye(1, 32)] * 2, [torch.eye(1, 32)] * crops, rounds) < math.inf


@pytest.mark.parametrize("count", range(1, 20))
def test_value_cosine_against_a_loop_and_in_both_orders(count):
    first, second = torch.randn(count, 32), torch.randn(count, 32)
    found, expected = cosine(first, second), []
    for a, b in zip(first.double().tolist(), second.double().tolist(), strict=True):
        product = sum(x * y for x, y in zip(a, b, strict=True))
        expected.append(product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b)))
    assert found.tolist() == pytest.approx(expected, abs=1e-5)
    torch.testing.assert_close(cosine(second, first), found)
    torch.testing.assert_close(simsiam_per_sample(first, second), -found / 2)
