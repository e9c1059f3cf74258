"""infoNCE against a loop over queries, keys and negatives."""

import math

import pytest
import torch
from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.learned.losses import instance_bce
from samix.losses.contrastive import info_nce, info_nce_per_sample, mixup_info_nce

TAU = 0.2
INDEX = torch.tensor([2, 0, 3, 1])


def unit(count: int, dim: int = 6, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


def loop_nce(query: torch.Tensor, key: torch.Tensor, negatives: torch.Tensor) -> float:
    positive = math.exp(float(query @ key) / TAU)
    return -math.log(positive / (positive + sum(math.exp(float(query @ n) / TAU) for n in negatives)))


def test_value_info_nce_against_a_loop():
    query, key, negatives = unit(4), unit(4, seed=1), unit(7, seed=2)
    expected = sum(loop_nce(query[i], key[i], negatives) for i in range(4)) / 4
    assert float(info_nce(query, key, negatives, TAU)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_mixup_info_nce_against_a_loop(lam):
    mixed, key, negatives = unit(4), unit(4, seed=1), unit(7, seed=2)
    expected = 0.0
    for i in range(4):
        weight, j = float(lam.expand(4)[i]), int(INDEX[i])
        expected += weight * loop_nce(mixed[i], key[i], negatives)
        expected += (1 - weight) * loop_nce(mixed[i], key[j], negatives)
    found = mixup_info_nce(mixed, key, negatives, Pairing(lam, INDEX), TAU)
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_value_alike_negatives_are_left_out():
    """They share the label of the positive, so the second term leaves out the partner's."""
    mixed, key, negatives = unit(4), unit(4, seed=1), unit(7, seed=2)
    labels, theirs = torch.tensor([0, 1, 0, 2]), torch.tensor([0, 1, 2, 0, -1, -1, 1])
    alike, lam = labels[:, None] == theirs[None], torch.tensor([0.1, 0.5, 0.8, 1.0])
    expected = 0.0
    for i in range(4):
        for j, weight in ((i, float(lam[i])), (int(INDEX[i]), 1 - float(lam[i]))):
            expected += weight * loop_nce(mixed[i], key[j], negatives[theirs != labels[j]])
    found = mixup_info_nce(mixed, key, negatives, Pairing(lam, INDEX), TAU, alike)
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_value_where_all_negatives_are_alike_nothing_is_left_to_learn():
    query, key, negatives = unit(4), unit(4, seed=1), unit(7, seed=2)
    found = info_nce_per_sample(query, key, negatives, TAU, torch.ones(4, 7, dtype=torch.bool))
    torch.testing.assert_close(found, torch.zeros(4))


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_instance_bce_against_a_loop(lam):
    mixed, key = unit(4), unit(4, seed=1)
    expected = 0.0
    for i in range(4):
        weight, j = float(lam.expand(4)[i]), int(INDEX[i])
        first, second = (math.exp(float(mixed[i] @ key[k]) / TAU) for k in (i, j))
        expected -= weight * math.log(first / (first + second))
        expected -= (1 - weight) * math.log(second / (first + second))
    found = instance_bce(mixed, key, Pairing(lam, INDEX), TAU)
    assert float(found) == pytest.approx(expected / 4, rel=1e-5)


def test_invariant_lam_one_is_the_clean_loss():
    mixed, key, negatives = unit(4), unit(4, seed=1), unit(7, seed=2)
    found = mixup_info_nce(mixed, key, negatives, Pairing(torch.ones(1), INDEX), TAU)
    torch.testing.assert_close(found, info_nce(mixed, key, negatives, TAU))


def test_invariant_the_local_term_is_smallest_where_the_share_is_lam():
    key = torch.eye(2)
    pairing = Pairing(torch.tensor([0.7]), torch.tensor([1, 0]))
    angles = torch.linspace(0, math.pi / 2, 181)
    losses = []
    for angle in angles:
        mixed = torch.stack(
            [torch.stack([angle.cos(), angle.sin()]), torch.stack([angle.sin(), angle.cos()])]
        )
        losses.append(float(instance_bce(mixed, key, pairing, 1.0)))
    best = angles[int(torch.tensor(losses).argmin())]
    share = torch.sigmoid(best.cos() - best.sin())
    assert float(share) == pytest.approx(0.7, abs=0.01)


def test_shape_half_precision_is_computed_in_float32():
    query, key, negatives = (unit(4, seed=s).bfloat16() for s in range(3))
    assert info_nce(query, key, negatives, 0.01).dtype == torch.float32
    assert info_nce(query, key, negatives, 0.001).isfinite()


def test_gradient_reaches_the_query_only_where_asked():
    query, key, negatives = unit(4).requires_grad_(), unit(4, seed=1), unit(7, seed=2)
    mixup_info_nce(query, key, negatives, Pairing(torch.tensor([0.4]), INDEX), TAU).backward()
    assert query.grad.abs().min() > 0


# The official code's numbers: its partner's keys come from another view, so both kinds of keys stand in one
# batch here, which holds every mixture twice, once with lam and once with 1 - lam.


def recorded_batch(record: dict[str, torch.Tensor], lam: float):
    mixed = record["mix_raw"].clone().requires_grad_()
    twice = F.normalize(mixed, dim=1).repeat(2, 1)
    key = torch.cat([record["pos_a"], record["pos_b"][record["idx_shuffle"]]])
    weight = torch.tensor([lam, 1 - lam]).repeat_interleave(8)
    return mixed, twice, key, Pairing(weight, torch.arange(16).roll(8))


@pytest.mark.parametrize("lam", [0.1, 0.35, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["infoNCE", "BCE"])
def test_value_golden_mixed_losses(golden, kind, lam):
    record = golden("e_mocosamix_losses")
    raw, mixed, key, pairing = recorded_batch(record, lam)
    if kind == "BCE":
        loss = instance_bce(mixed, key, pairing, float(record["temperature"]))
    else:
        loss = mixup_info_nce(mixed, key, record["queue"].T, pairing, float(record["temperature"]))
    loss.backward()
    torch.testing.assert_close(loss.detach(), record[f"{kind}/lam{lam}/loss"])
    torch.testing.assert_close(raw.grad, record[f"{kind}/lam{lam}/grad_mix_raw"])


def test_value_golden_clean_loss(golden):
    record = golden("e_mocosamix_losses")
    raw = record["mix_raw"].clone().requires_grad_()
    loss = info_nce(F.normalize(raw, dim=1), record["pos_a"], record["queue"].T, TAU)
    loss.backward()
    torch.testing.assert_close(loss.detach(), record["moco_plain/loss"])
    torch.testing.assert_close(raw.grad, record["moco_plain/grad_raw"])
