"""i-Mix, Un-Mix, BSIM and WBSIM are settings of `SelfMixing`; here against loops over their formulas."""

import math
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samix.core.mixed import Parents
from samix.losses.contrastive import over_parents
from samix.methods.around.self_mixing import SelfMixing
from samix.methods.ssl.base import Observed, Terms, views_of
from samix.mixups import CutMix, MixUp, MixupCutMix

IMIX = Terms(base=0.0, dominant=True, shared=True, views=1)
UNMIX = Terms(reversed_pairs=True)
BSIM = Terms(base=0.0)
WBSIM = Terms(base=0.5, mixed=0.5)


def record_inputs(module: nn.Module) -> list[torch.Tensor]:
    """The images of every call of a module."""
    calls: list[torch.Tensor] = []
    module.register_forward_pre_hook(lambda module, inputs: calls.append(inputs[0].clone()))
    return calls


def loop_nce(query: torch.Tensor, rows: torch.Tensor, positive: int, tau: float) -> float:
    logits = [float(query @ row) / tau for row in rows]
    return -math.log(math.exp(logits[positive]) / sum(math.exp(logit) for logit in logits))


def keys_of(model: SelfMixing, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return F.normalize(model.method.momentum(x), dim=1)


def queries_of(model: SelfMixing, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model.method.predict(x)


@pytest.mark.parametrize("policy", [MixUp(per_sample=True), CutMix()], ids=["mixup", "cutmix"])
@pytest.mark.parametrize("name", ["moco-v1", "moco-v2"])
def test_value_imix_is_one_softmax_over_batch_keys_and_queue(selfsup, two_views, name, policy):
    model, (x, index) = SelfMixing(selfsup(name), policy, IMIX), two_views(5)
    oracle, calls = deepcopy(model), record_inputs(model.method.branch)
    torch.manual_seed(1)
    losses = model(x, index)
    torch.manual_seed(1)
    partner = oracle.draw(5, x.device).index.tolist()

    # The mixed image replaces the query: one online pass, over mixed images alone.
    (x_mix,) = calls
    assert (x_mix != x[:5]).flatten(1).any(dim=1).all()
    rows = torch.cat([keys_of(oracle, x[5:]), oracle.method.queue.keys])  # [N + K, D]
    q_m, lam, expected = queries_of(oracle, x_mix), losses.lam.expand(5), 0.0
    for i in range(5):
        own, other = (loop_nce(q_m[i], rows, each, oracle.method.tau) for each in (i, partner[i]))
        expected += float(lam[i]) * own + (1 - float(lam[i])) * other
    assert float(losses.encoder.detach()) == pytest.approx(expected / 5, rel=1e-4)


@pytest.mark.parametrize("policy", [MixUp(per_sample=True), CutMix()], ids=["mixup", "cutmix"])
def test_value_imix_keeps_the_own_image_dominant(selfsup, policy):
    model = SelfMixing(selfsup("moco-v2"), policy, IMIX)
    lam = torch.cat([model.draw(8, torch.device("cpu")).lam for _ in range(400)])
    assert float(lam.min()) >= 0.5
    assert float(lam.mean()) == pytest.approx(0.75, abs=0.03)  # folded Beta(1, 1)


@pytest.mark.parametrize("name", ["moco-v1", "moco-v2", "moco-v3", "byol"])
def test_value_imix_mixes_one_view_and_targets_are_clean(selfsup, two_views, name):
    model, (x, index) = SelfMixing(selfsup(name), MixUp(per_sample=True), IMIX), two_views(5)
    online, slow = record_inputs(model.method.branch), record_inputs(model.method.momentum)
    model(x, index)
    assert len(online) == 1
    assert all(torch.equal(seen, x[:5]) or torch.equal(seen, x[5:]) for seen in slow)


def test_value_imix_of_moco_v3_has_its_own_softmax_anyway(selfsup, two_views):
    method, (x, index) = selfsup("moco-v3"), two_views(5)
    found = []
    for shared in (True, False):
        torch.manual_seed(4)
        terms = Terms(base=0.0, dominant=True, shared=shared)
        found.append(SelfMixing(deepcopy(method), MixUp(), terms)(x, index).encoder)
    torch.testing.assert_close(found[0], found[1])


def test_value_one_softmax_and_two_have_different_optima(selfsup):
    """The shared softmax rests at p = (lam, 1 - lam) and repels a key that has more than its share; separate
    ones attract both keys whatever their ratio."""
    method, lam = selfsup("moco-v2"), 0.7
    unit = torch.eye(8)
    seen = Observed((), (unit[:2],), negatives=unit[2:3].expand(16, -1).clone())
    query = torch.zeros(2, 8)
    for i, weights in enumerate([(lam, 1 - lam), (1 - lam, lam)]):
        query[i, :2] = method.tau * torch.tensor(weights).log()
    query[:, 2] = -50 * method.tau  # far from every negative
    query.requires_grad_()
    family = Parents(torch.tensor([[0, 1], [1, 0]]), torch.tensor([[lam, 1 - lam]] * 2))

    def slope(contrast) -> torch.Tensor:
        loss = over_parents(lambda positive: contrast(query, unit[:2], positive, seen), family)
        return torch.autograd.grad(loss, query)[0]

    torch.testing.assert_close(slope(method.shared_contrast), torch.zeros(2, 8), atol=1e-6, rtol=0)
    with torch.no_grad():
        query[:, :3] = 0.0  # both keys are equally near, and negatives matter
        query[:, 2] = -5 * method.tau
    lighter = torch.tensor([[1], [0]])
    assert (slope(method.shared_contrast).gather(1, lighter) > 0.01).all()
    assert (slope(method.contrast)[:, :2] < 0).all()


@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize(
    "policy",
    [MixUp(), CutMix(), MixupCutMix(mixup_alpha=1.0, cutmix_alpha=1.0)],
    ids=["mixup", "cutmix", "either"],
)
def test_value_unmix_is_two_contrasts_of_one_pass(selfsup, two_views, count, policy):
    """NCE(q, k) + lam NCE(q_m, k) + (1 - lam) NCE(rev(q_m), k), each positive with the queue alone."""
    model, (x, index) = SelfMixing(selfsup("moco-v2"), policy, UNMIX), two_views(count)
    oracle, calls = deepcopy(model), record_inputs(model.method.branch)
    losses = model(x, index)
    clean, x_mix = calls  # one clean and one mixed pass
    assert torch.equal(clean, x[:count]) and losses.lam.shape == (1,)
    lam, keys, queue = float(losses.lam), keys_of(oracle, x[count:]), oracle.method.queue.keys

    def nce(queries: torch.Tensor) -> float:
        parts = [
            loop_nce(q, torch.cat([k[None], queue]), 0, oracle.method.tau)
            for q, k in zip(queries, keys, strict=True)
        ]
        return sum(parts) / count

    q, q_m = queries_of(oracle, clean), queries_of(oracle, x_mix)
    expected = nce(q) + lam * nce(q_m) + (1 - lam) * nce(q_m.flip(0))
    assert float(losses.encoder.detach()) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("count", [4, 5])
def test_value_unmix_row_i_of_the_reversed_mixtures_has_image_i_second(selfsup, two_views, count):
    model, (x, index) = SelfMixing(selfsup("moco-v2"), MixUp(), UNMIX), two_views(count)
    calls = record_inputs(model.method.branch)
    lam = float(model(x, index).lam)
    x_mix = calls[-1]
    for i in range(count):
        expected = lam * x[count - 1 - i] + (1 - lam) * x[i]
        torch.testing.assert_close(x_mix.flip(0)[i], expected)
    changed = (x_mix != x[:count]).flatten(1).any(dim=1)
    assert int(changed.sum()) >= count - count % 2
    if count % 2:
        torch.testing.assert_close(x_mix[count // 2], x[count // 2])  # with itself


@pytest.mark.parametrize("name", ["moco-v2", "simclr", "byol", "simsiam", "moco-v3", "swav"])
def test_value_wbsim_is_half_the_base_and_half_of_bsim(selfsup, two_views, name):
    method, (x, index) = selfsup(name), two_views(6)

    def loss_of(terms: Terms) -> torch.Tensor:
        torch.manual_seed(6)
        return SelfMixing(deepcopy(method), CutMix(), terms)(x, index).encoder

    base = deepcopy(method)(x, index).encoder
    bsim = loss_of(BSIM)
    torch.testing.assert_close(loss_of(WBSIM), 0.5 * base + 0.5 * bsim, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss_of(Terms()), base + bsim, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["byol", "simsiam"])
def test_value_bsim_weighs_both_parents_cosines(selfsup, two_views, name):
    method, (x, index) = selfsup(name), two_views(6)
    model, scale = SelfMixing(deepcopy(method), MixUp(), BSIM), {"byol": 2.0, "simsiam": 0.5}[name]
    torch.manual_seed(6)
    losses = model(x, index)
    with torch.no_grad():
        torch.manual_seed(6)
        lam, partner = model.draw(6, x.device)
        branch = method.momentum or method.branch
        expected = 0.0
        for view, other in (views_of(x, index), views_of(x, index)[::-1]):
            p, z = method.predict(lam * view + (1 - lam) * view[partner]), branch(other)
            for i in range(6):
                own, second = (F.cosine_similarity(p[i], z[k], dim=0) for k in (i, int(partner[i])))
                expected -= scale * float(lam * own + (1 - lam) * second) / 6
    expected += 4.0 if name == "byol" else 0.0
    assert float(losses.encoder.detach()) == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_value_bsim_of_moco_has_separate_denominators(selfsup, two_views):
    model, (x, index) = SelfMixing(selfsup("moco-v2"), CutMix(), BSIM), two_views(5)
    oracle, calls = deepcopy(model), record_inputs(model.method.branch)
    torch.manual_seed(6)
    losses = model(x, index)
    torch.manual_seed(6)
    partner = oracle.draw(5, x.device).index.tolist()
    (x_mix,) = calls
    q_m, keys, queue = queries_of(oracle, x_mix), keys_of(oracle, x[5:]), oracle.method.queue.keys
    expected = 0.0
    for i in range(5):
        own, other = (
            loop_nce(q_m[i], torch.cat([keys[k : k + 1], queue]), 0, oracle.method.tau)
            for k in (i, partner[i])
        )
        expected += float(losses.lam) * own + (1 - float(losses.lam)) * other
    assert float(losses.encoder.detach()) == pytest.approx(expected / 5, rel=1e-4)


@pytest.mark.parametrize("terms", [IMIX, UNMIX, BSIM, WBSIM], ids=["i-mix", "un-mix", "bsim", "wbsim"])
def test_gradient_reaches_what_the_method_trains(selfsup, method_name, two_views, gradients, terms):
    model = SelfMixing(selfsup(method_name), CutMix(), terms)
    found = gradients(model(*two_views(6)).encoder, model)
    assert all(gradient is not None for gradient in found.values())
    assert not any("momentum" in name for name in found)
