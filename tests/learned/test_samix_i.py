"""SAMix-I: which gradient reaches which parameters with every method, and the Mixer's loss against loops."""

import math
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.mixed import blend
from samix.core.pairing import Pairing, draw_pairing
from samix.learned import Adjusting, MaskLoss, MomentumCopy, Speed
from samix.learned.losses import mask_loss
from samix.learned.mixer import MixerConfig
from samix.learned.samix_i import InstanceMixup, SAMixI, across_views
from samix.methods.ssl.base import Terms, views_of

INDEX = torch.tensor([2, 0, 3, 1])
LIVELY = MixerConfig(init_std=0.5)


@pytest.fixture
def samix_i(selfsup):
    """Builds SAMix-I around a method by name; a lively Mixer, whose masks are far from constant."""

    def build(name: str, terms: Terms | None = None, **fields) -> SAMixI:
        settings = InstanceMixup(**{"mixer": LIVELY, "negatives": 10} | fields)
        return SAMixI(selfsup(name), settings.mixer.build(8), settings, terms, dim=8)

    return build


def record_batches(module: nn.Module) -> list[int]:
    sizes: list[int] = []
    module.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    return sizes


def test_gradient_of_the_encoder_loss_reaches_exactly_the_method(samix_i, method_name, two_views, gradients):
    model = samix_i(method_name)
    losses = model(*two_views(6))
    assert all(grad is not None for grad in gradients(losses.encoder, model.method).values())
    assert all(grad is None for grad in gradients(losses.encoder, model.mixer).values())


def test_gradient_of_the_mixer_loss_reaches_exactly_the_mixer(samix_i, method_name, two_views, gradients):
    model = samix_i(method_name)
    losses = model(*two_views(6))
    assert all(grad is None for grad in gradients(losses.mixer, model.method).values())
    for name, grad in gradients(losses.mixer, model.mixer).items():
        assert grad is not None, name
        if name != "content.0.bias":  # batch norm takes this one out again
            assert grad.abs().max() > 0, name


def test_gradient_never_reaches_the_frozen_copy(samix_i, method_name, two_views):
    model = samix_i(method_name)
    model(*two_views()).total.backward()
    assert not any(p.requires_grad for p in model.frozen_copy.parameters())
    assert all(p.grad is None for p in model.frozen_copy.parameters())
    assert (model.copy is None) == (model.method.momentum is not None)
    assert (model.bank is None) == (model.method.queue is not None)


def test_gradient_the_mixer_learns_through_the_pictures(samix_i, method_name, two_views, gradients):
    model = samix_i(method_name, mask=MaskLoss(beta=0.0))
    grads = gradients(model(*two_views()).mixer, model.mixer).values()
    assert max(float(grad.abs().max()) for grad in grads) > 1e-4


def test_gradient_eta_turns_the_mixers_gradient(samix_i, two_views, gradients):
    """O1: in the official code eta changes nothing."""
    model, directions = samix_i("moco-v2", mask=MaskLoss(beta=0.0)), []
    for eta in (0.0, 1.0):
        model.settings = InstanceMixup(mixer=LIVELY, mask=MaskLoss(beta=0.0), eta=eta)
        torch.manual_seed(3)
        found = gradients(model(*two_views()).mixer, model.mixer)
        flat = torch.cat([grad.flatten() for grad in found.values()])
        directions.append(flat / flat.norm())
    assert float(directions[0] @ directions[1]) < 0.9999


def loop_generation(mixed: Tensor, keys: Tensor, lam: Tensor, negatives: Tensor, tau: float):
    """Eq. (7) and Eq. (4), one mixture at a time."""
    m, k = ([row / row.norm() for row in rows] for rows in (mixed, keys))
    local = globally = 0.0
    for i, j in enumerate(INDEX.tolist()):
        weight = float(lam.expand(4)[i])
        first, second = (math.exp(float(m[i] @ k[n]) / tau) for n in (i, j))
        others = sum(math.exp(float(m[i] @ row) / tau) for row in negatives)
        local -= weight * math.log(first / (first + second)) / 4
        local -= (1 - weight) * math.log(second / (first + second)) / 4
        globally -= weight * math.log(first / (first + others)) / 4
        globally -= (1 - weight) * math.log(second / (second + others)) / 4
    return local, globally


@pytest.mark.parametrize("name", ["moco-v2", "byol"], ids=["queue of the method", "bank of the wrapper"])
@pytest.mark.parametrize(("eta", "local"), [(0.5, 1.0), (0.0, 1.0), (1.0, 0.0), (0.3, 0.8)])
@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_generation_loss_against_a_loop(samix_i, two_views, name, eta, local, lam):
    model, (x, index) = samix_i(name, eta=eta, local=local), two_views()
    seen = model.method.observe(*views_of(x, index))
    mixed, keys = torch.randn(2, 4, 8).unbind()
    negatives = model.method.queue.keys if name == "moco-v2" else model.bank.keys
    near, far = loop_generation(mixed, keys, lam, negatives, model.method.tau)
    found = model.judge_embeddings(mixed, keys, Pairing(lam, INDEX), index, seen).generation
    assert found.local.item() == pytest.approx(near, rel=1e-4)
    assert found.globally.item() == pytest.approx(far, rel=1e-4)
    assert found.total.item() == pytest.approx(local * near + eta * far, rel=1e-4)


@pytest.mark.parametrize("progress", [0.0, 0.25, 1.0])
def test_value_the_mixer_objective(samix_i, two_views, progress):
    model = samix_i("moco-v2", eta=0.3, mask=MaskLoss(beta=0.2, beta_end=0.0, margin=0.05, variance=1.5))
    x, index = two_views()
    first, second = views_of(x, index)
    seen = model.method.observe(first, second)
    z, keys = model.maps(first), model.keys(second, seen)
    start = model(x, index)
    torch.manual_seed(5)
    losses = model.mixer_step(
        start, first, z, progress, lambda x_mix, pairing: model.judge(x_mix, pairing, keys, index, seen)
    )
    torch.manual_seed(5)
    pairing = draw_pairing(4, 2.0, per_sample=True)
    mask = model.mixer(z, pairing, (16, 16))
    embedding = model.method.momentum(blend(first, first[pairing.index], mask))
    generation = model.judge_embeddings(embedding, keys, pairing, index, seen).generation
    masks = mask_loss(mask, pairing.lam, 0.05, 1.5)
    torch.testing.assert_close(losses.mixer, generation.total + 0.2 * (1 - progress) * masks)
    expected = torch.stack([generation.local, generation.globally, masks]).detach()
    torch.testing.assert_close(torch.stack(losses.log[:3]), expected)
    assert not any(value.requires_grad for value in losses.log)
    assert torch.equal(losses.encoder, start.encoder)


def test_value_keys_are_clean_second_views(samix_i, method_name, two_views):
    model, (x, index) = samix_i(method_name), two_views()
    first, second = views_of(x, index)
    seen = model.method.observe(first, second)
    keys = model.keys(second, seen)
    assert not keys.requires_grad
    torch.testing.assert_close(keys, model.frozen_copy(second), rtol=1e-4, atol=1e-5)


def test_value_the_encoder_objective(samix_i, method_name, two_views):
    """Clean loss plus the mixed loss of both views under their own masks, with one pairing."""
    model, (x, index) = samix_i(method_name, Terms(base=0.5, mixed=2.0), speed=Speed(prob=0.0)), two_views()
    other, (first, second) = deepcopy(model), views_of(x, index)
    torch.manual_seed(5)
    found = model(x, index, 0.4)
    torch.manual_seed(5)
    other.method.begin(0.4)
    seen = other.method.observe(first, second)
    pairing = other.settings.draw(4)
    views = (first, second)[: len(seen.targets)]
    with torch.no_grad():
        mixed = [other.mix(view, other.maps(view), pairing, 0.4) for view in views]
    outputs = [other.method.predict(each.x) for each in mixed]
    expected = 0.5 * other.method.loss(seen)
    expected = expected + 2 * other.method.mixed_loss(outputs, mixed, seen.targets, seen)
    torch.testing.assert_close(found.encoder, expected, rtol=1e-4, atol=1e-5)
    assert found.mixer is None and torch.equal(found.lam, pairing.lam)
    if len(mixed) == 2:
        assert not torch.equal(mixed[0].mask, mixed[1].mask)


@pytest.mark.parametrize(("views", "same_view"), [(1, False), (2, True)])
def test_value_terms(samix_i, method_name, two_views, views, same_view):
    model = samix_i(method_name, Terms(base=0.0, same_view=same_view, views=views))
    sizes = record_batches(model.mixer)
    losses = model(*two_views())
    losses.total.backward()
    directions = 1 if model.method.queue is not None else 2
    assert losses.total.isfinite() and len(sizes) == min(views, directions) + 1


@pytest.mark.parametrize(("fraction", "count"), [(0.5, 4), (0.01, 2)])
def test_value_a_part_of_the_batch_trains_the_mixer(samix_i, method_name, two_views, fraction, count):
    model = samix_i(method_name, Terms(views=1), speed=Speed(fraction=fraction))
    sizes = record_batches(model.mixer)
    model(*two_views(8)).total.backward()
    assert sizes == [8, count]


def test_value_without_mixer_probability_the_mixer_does_not_learn(samix_i, method_name, two_views):
    losses = samix_i(method_name, speed=Speed(prob=0.0))(*two_views())
    assert losses.mixer is None and losses.log is None


@pytest.mark.parametrize("count", [2, 7])
def test_value_any_batch(samix_i, method_name, two_views, count):
    model = samix_i(method_name)
    for step in range(2):
        losses = model(*two_views(count, seed=step), progress=step / 2)
        losses.total.backward()
        model.after_step(step / 2)
    assert losses.total.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_value_bfloat16_autocast_gives_float32_losses(samix_i, method_name, two_views):
    model = samix_i(method_name)
    with torch.autocast("cpu", torch.bfloat16):
        losses = model(*two_views())
    assert losses.encoder.dtype == losses.mixer.dtype == torch.float32
    losses.total.backward()
    assert all(p.grad.isfinite().all() for p in model.mixer.parameters())


def test_value_the_bank_holds_unit_keys_of_past_steps(samix_i, two_views):
    model, (x, index) = samix_i("byol"), two_views()
    seen = deepcopy(model).method.observe(*views_of(x, index))
    before = model.bank.read()
    model(x, index)
    torch.testing.assert_close(model.bank.read()[:4], F.normalize(seen.keys, dim=1))
    assert torch.equal(model.bank.read()[4:], before[4:])


def test_value_queue_and_bank_move_once_per_step(samix_i, method_name, two_views):
    model = samix_i(method_name)
    for step in range(2):
        model(*two_views(seed=step))
    queue = model.method.queue if model.bank is None else model.bank
    assert int(queue.count) == 8


def test_value_after_step_projects_gamma(samix_i, method_name):
    model = samix_i(method_name)
    nn.init.constant_(model.mixer.gamma, 1.7)
    model.after_step(0.0)
    assert model.mixer.gamma.item() == 1.0


@pytest.mark.parametrize(("progress", "momentum"), [(0.0, 0.5), (0.19, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_value_after_step_moves_the_copy(samix_i, progress, momentum):
    model = samix_i("simclr", copy=MomentumCopy(momentum=0.5, momentum_end=1.0, hold=0.2))
    with torch.no_grad():
        for parameter in model.method.parameters():
            parameter.add_(torch.randn_like(parameter))
    before = [p.clone() for p in model.copy.parameters()]
    model.after_step(progress)
    branch = model.method.branch.parameters()
    for old, new, online in zip(before, model.copy.parameters(), branch, strict=True):
        torch.testing.assert_close(new, momentum * old + (1 - momentum) * online.detach())


def test_value_after_step_moves_the_methods_own_branch(samix_i):
    model = samix_i("byol")
    other = deepcopy(model.method)
    model.after_step(0.3)
    other.after_step(0.3)
    for one, two in zip(model.method.momentum.parameters(), other.momentum.parameters(), strict=True):
        assert torch.equal(one, two)


def test_value_parameter_groups_hold_every_trained_parameter_once(samix_i, method_name):
    model = samix_i(method_name)
    groups = model.parameter_groups()
    listed = [id(p) for group in groups.values() for p in group]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert list(groups) == [*model.method.parameter_groups(), "mixer"]


def run(model: SAMixI, batches, steps: int = 2) -> None:
    optimizer = torch.optim.SGD([p for group in model.parameter_groups().values() for p in group], lr=0.1)
    for step in range(steps):
        torch.manual_seed(step)
        optimizer.zero_grad()
        model(*batches(4, seed=step), progress=step / steps).total.backward()
        optimizer.step()
        model.after_step((step + 1) / steps)


def test_invariant_a_resumed_model_continues_bit_for_bit(samix_i, method_name, two_views):
    model, other = samix_i(method_name), samix_i(method_name)
    run(model, two_views)
    other.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    for each in (model, other):
        run(each, two_views)
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def test_value_picture_shows_the_mixers_masks(samix_i, two_views):
    model, (x, _) = samix_i("moco-v2", adjusting=Adjusting(prob=0.0)), two_views()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pairing = Pairing(torch.tensor([0.4]), torch.arange(8).roll(1))
    mixed = model.picture(x, torch.zeros(8).long(), pairing)
    assert mixed.mask.std() > 1e-3 and model.training
    torch.testing.assert_close(mixed.x, blend(x, x[pairing.index], mixed.mask))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_error_another_number_of_views(samix_i, two_views):
    x, index = two_views()
    with pytest.raises(ValueError, match="4 pictures need 8 images .* got 4"):
        samix_i("moco-v2")(x[:4], index)


def test_value_defaults():
    settings = InstanceMixup()
    assert (settings.eta, settings.local, settings.alpha) == (0.5, 1.0, 2.0)
    assert (settings.mixer.dropout, settings.adjust_margin) == (0.1, 0.1)


def test_value_terms_choose_partners_and_lam(samix_i, two_views, monkeypatch):
    model, (x, index) = samix_i("moco-v2", Terms(reversed_pairs=True, dominant=True)), two_views(6)
    seen, mix = [], model.mix

    def keep(x, z, pairing, progress):
        seen.append(pairing)
        return mix(x, z, pairing, progress)

    monkeypatch.setattr(model, "mix", keep)
    losses = model(x, index)
    assert seen[0].index.tolist() == [5, 4, 3, 2, 1, 0]
    assert (losses.lam >= 0.5).all() and losses.lam.unique().numel() > 1


def test_value_across_views_partners_are_of_the_other_view(samix_i, two_views):
    """cross_view: x_m = s_i x_i of the first + s_j x_j of the second view, targets k_2 of i and k_1 of j."""
    model = samix_i("moco-v2", cross_view=True).eval()
    (x, index), pairing = two_views(4), Pairing(torch.tensor([0.3, 0.6, 0.4, 0.7]), INDEX)
    first, second = views_of(x, index)
    [mixed] = model.mix_views((first, second), model.maps(first), pairing, 0.5, index, 1)
    for i, j in enumerate(INDEX.tolist()):
        torch.testing.assert_close(mixed.x[i], mixed.mask[i] * first[i] + (1 - mixed.mask[i]) * second[j])
    assert float(mixed.mask.std()) > 0.01

    seen = model.method.observe(first, second)
    found = model.terms.loss(model.method, (first, second), across_views(model.method, (first, second), seen),
                             [model.method.predict(mixed.x)], [mixed])  # fmt: skip
    z = [F.normalize(model.method.momentum(view), dim=1) for view in (first, second)]
    query, mixture = model.method.predict(first), model.method.predict(mixed.x)
    queue, tau, total = model.method.queue.read(), model.method.tau, 0.0
    for i, j in enumerate(INDEX.tolist()):
        terms = ((1.0, query[i], z[1][i]), (float(pairing.lam[i]), mixture[i], z[1][i]),
                 (1 - float(pairing.lam[i]), mixture[i], z[0][j]))  # fmt: skip
        for weight, q, key in terms:
            logits = torch.cat([(q @ key)[None], queue @ q]) / tau
            total += weight * float(logits.logsumexp(dim=0) - logits[0]) / 4
    assert float(found) == pytest.approx(total, rel=1e-4)


def test_error_across_views_needs_a_queue(samix_i):
    with pytest.raises(ValueError, match=r"mixup\.cross_view .*BYOL is not. Choose MoCo"):
        samix_i("byol", cross_view=True)
    with pytest.raises(ValueError, match=r"leave terms.same_view and terms.shared"):
        samix_i("moco-v2", Terms(same_view=True), cross_view=True)
