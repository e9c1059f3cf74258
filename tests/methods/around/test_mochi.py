"""MoCHi: which negatives are made, of what, and who learns from them."""

import math
from copy import deepcopy

import pytest
import torch
from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.methods.around.mochi import MoCHi, MoCHiConfig, hard_negatives, harder_nce_per_sample
from samix.methods.ssl.base import views_of

FEW = MoCHiConfig(hardest=5, pairs=4, queries=3, warmup=0.25)


def unit(count: int, dim: int = 6, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)), dim=1)


def axis(number: int, sign: float = 1.0, dim: int = 4) -> torch.Tensor:
    return sign * torch.eye(dim)[number]


def test_value_against_a_loop():
    query, negatives = unit(3), unit(9, seed=1)
    found = hard_negatives(
        query, negatives, hardest=4, pairs=5, queries=2, generator=torch.Generator().manual_seed(7)
    )
    draw = torch.Generator().manual_seed(7)
    a, b = (torch.randint(4, (3, 5), generator=draw) for _ in range(2))
    alpha = torch.rand(3, 5, 1, generator=draw)
    c = torch.randint(4, (3, 2), generator=draw)
    beta = torch.rand(3, 2, 1, generator=draw) / 2
    for i in range(3):
        order = sorted(range(9), key=lambda n: -float(query[i] @ negatives[n]))[:4]  # noqa: B023
        for s in range(5):
            weight, first, second = float(alpha[i, s]), negatives[order[a[i, s]]], negatives[order[b[i, s]]]
            expected = (1 - weight) * first + weight * second
            torch.testing.assert_close(found[i, s], expected / expected.norm())
        for s in range(2):
            weight = float(beta[i, s])
            expected = weight * query[i] + (1 - weight) * negatives[order[c[i, s]]]
            torch.testing.assert_close(found[i, 5 + s], expected / expected.norm())


def test_value_each_query_has_its_own_hardest():
    """With one hardest key, mixtures of two keys are that key."""
    query = torch.stack([axis(0), axis(1), axis(0, -1.0)])
    negatives = F.normalize(torch.stack([axis(0) + axis(2), axis(1) + axis(3), axis(2) - axis(0)]), dim=1)
    made = hard_negatives(query, negatives, hardest=1, pairs=6, queries=0)
    torch.testing.assert_close(made, negatives[:, None].expand(-1, 6, -1))


def test_value_the_query_never_dominates():
    """n is at a right angle to q, so q.h < n.h exactly where q weighs less than half."""
    made = hard_negatives(axis(0)[None], axis(1)[None], hardest=1, pairs=0, queries=2000)[0]
    share = made[:, 0] / (made[:, 0] + made[:, 1])
    assert float(share.max()) < 0.5 and float(share.min()) >= 0
    assert float(share.mean()) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("pairs, queries", [(7, 0), (0, 4), (7, 4)])
def test_shape_unit_vectors_without_gradient_from_a_short_queue(pairs, queries):
    query = unit(3).requires_grad_()
    made = hard_negatives(query, unit(2, seed=1), hardest=1024, pairs=pairs, queries=queries)
    assert made.shape == (3, pairs + queries, 6) and not made.requires_grad
    torch.testing.assert_close(made.norm(dim=2), torch.ones(3, pairs + queries))


def test_value_the_contrast_against_a_loop():
    query, key, negatives, made = unit(3), unit(3, seed=1), unit(5, seed=2), unit(12, seed=3).view(3, 4, 6)
    found = harder_nce_per_sample(query, key, negatives, made, 0.2)
    for i in range(3):
        logits = [float(query[i] @ k) / 0.2 for k in (key[i], *negatives, *made[i])]
        expected = -math.log(math.exp(logits[0]) / sum(math.exp(logit) for logit in logits))
        assert len(logits) == 1 + 5 + 4 and float(found[i]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("which", ["query", "negatives", "both"])
def test_shape_negatives_of_half_precision_are_made_in_full(half, which):
    query, negatives = unit(3).to(half), unit(9, seed=1).to(half)
    settings = {"hardest": 4, "pairs": 5, "queries": 2}
    expected = hard_negatives(
        query.float(), negatives.float(), **settings, generator=torch.Generator().manual_seed(7)
    )
    query = query.float() if which == "negatives" else query
    negatives = negatives.float() if which == "query" else negatives
    found = hard_negatives(query, negatives, **settings, generator=torch.Generator().manual_seed(7))
    assert found.dtype == torch.float32 and torch.equal(found, expected)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_shape_the_contrast_of_half_precision_queries_is_full(half):
    query, key, negatives = unit(3).to(half), unit(3, seed=1), unit(5, seed=2)
    made = unit(12, seed=3).view(3, 4, 6)
    expected = harder_nce_per_sample(query.float(), key, negatives, made, 0.2)
    found = harder_nce_per_sample(query, key, negatives, made, 0.2)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)
    rounded = key.to(half), negatives.to(half)
    found = harder_nce_per_sample(query, *rounded, made, 0.2)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=0.1)


def test_gradient_of_the_contrast_takes_what_was_made_as_constant():
    query, key, negatives = unit(3).requires_grad_(), unit(3, seed=1), unit(5, seed=2)
    made = hard_negatives(query, negatives, hardest=3, pairs=2, queries=2)
    (found,) = torch.autograd.grad(harder_nce_per_sample(query, key, negatives, made, 0.2).sum(), query)
    for i in range(3):
        rows = torch.cat([key[i : i + 1], negatives, made[i]])  # [1 + K + S, D]
        p = (rows @ query[i].detach() / 0.2).softmax(dim=0)
        torch.testing.assert_close(found[i], (p @ rows - key[i]) / 0.2)


def test_value_the_loss_of_a_step(selfsup, two_views):
    method, (x, index) = selfsup("moco-v2"), two_views()
    torch.manual_seed(2)
    found = MoCHi(deepcopy(method), FEW)(x, index, 0.25)
    with torch.no_grad():
        seen = method.observe(*views_of(x, index))
    torch.manual_seed(2)
    made = hard_negatives(seen.predictions[0], seen.negatives, hardest=5, pairs=4, queries=3)
    expected = 0.0
    for i in range(4):
        rows = torch.cat([seen.targets[0][i : i + 1], seen.negatives, made[i]])
        expected -= float((rows @ seen.predictions[0][i] / method.tau).log_softmax(dim=0)[0]) / 4
    assert float(found.encoder.detach()) == pytest.approx(expected, rel=1e-4)
    assert found.mixer is None and found.lam is None


def test_value_off_in_the_warm_up(selfsup, two_views):
    method, (x, index) = selfsup("moco-v1"), two_views()
    plain = deepcopy(method)(x, index).encoder.detach()
    torch.testing.assert_close(MoCHi(deepcopy(method), FEW)(x, index, 0.24).encoder.detach(), plain)
    assert MoCHi(deepcopy(method), FEW)(x, index, 0.25).encoder > plain


def test_value_only_clean_keys_enter_the_queue(selfsup, two_views):
    method, (x, index) = selfsup("moco-v2"), two_views()
    model, plain = MoCHi(deepcopy(method), FEW), deepcopy(method)
    model(x, index, 0.5)
    plain(x, index, 0.5)
    assert int(model.method.queue.count) == 4
    assert torch.equal(model.method.queue.keys, plain.queue.keys)


def test_gradient_reaches_exactly_the_online_branch(selfsup, two_views, gradients):
    model = MoCHi(selfsup("moco-v2"), FEW)
    found = gradients(model(*two_views(6), 0.5).encoder, model)
    assert all(name.startswith("method.branch") for name in found)
    assert all(gradient is not None for gradient in found.values())


def test_value_the_rest_is_the_methods(selfsup, two_views):
    model, (x, index) = MoCHi(selfsup("moco-v1")), two_views()
    assert model.parameter_groups().keys() == {"encoder"} and model.config == MoCHiConfig()
    assert model.picture(x[:4], index, Pairing(torch.tensor([0.5]), index.flip(0))) is None
    before = [p.clone() for p in model.method.momentum.parameters()]
    model.after_step(0.0)
    moved = zip(before, model.method.momentum.parameters(), strict=True)
    assert all(not torch.equal(old, new) for old, new in moved)


@pytest.mark.parametrize("name", ["moco-v3", "simclr", "byol", "simsiam", "swav"])
def test_error_a_method_without_a_queue(selfsup, name):
    method = selfsup(name)
    message = rf"negatives of a queue, and {type(method).__name__} has none. Choose MoCo v1 or v2"
    with pytest.raises(ValueError, match=message):
        MoCHi(method)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"hardest": 0}, "mixup.hardest must be at least 1, got 0"),
        ({"pairs": -1}, "mixup.pairs must not be negative, got -1"),
        ({"pairs": 0, "queries": 0}, "mixup.pairs and mixup.queries must not both be 0"),
        ({"warmup": 1.1}, r"mixup.warmup must lie in \[0, 1\], got 1.1"),
    ],
)
def test_error_config(fields, message):
    with pytest.raises(ValueError, match=message):
        MoCHiConfig(**fields)
