"""Hand-made policies inside self-supervised methods: mixed terms against loops, for every method."""

import math
from copy import deepcopy
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from samix.core.mixed import Mixed, Parents
from samix.core.pairing import Pairing
from samix.core.shapes import Stats
from samix.methods.around.self_mixing import LABELLED, SelfMixing
from samix.methods.ssl.base import Observed, SelfSupervised, Terms, views_of
from samix.mixups import MIXUPS, CutMix, LatentMixup, ManifoldMix, MixUp, Policy, TransMix
from samix.nn.zoo import build_encoder

INDEX = torch.tensor([2, 0, 3, 1])
ATTENTIVE = {"transmix", "tokenmix", "smmix"}
REFUSED = [name for name, kind in MIXUPS.items() if LABELLED.keys() & set(kind().needs)]


@dataclass(frozen=True, kw_only=True)
class ThreeParents(Policy):
    """Output i shows images i, i + 1 and i + 2 in fixed shares, as Co-Mixup's outputs have many parents."""

    def mix(self, x, pairing, hints, generator):
        share = torch.tensor([0.5, 0.3, 0.2])
        index = (torch.arange(len(x))[:, None] + torch.arange(3)) % len(x)
        images = sum(share[p] * x[index[:, p]] for p in range(3))
        return Mixed(images, torch.ones(1, 1, 16, 16), pairing, Parents(index, share.expand(len(x), 3)))


@dataclass(frozen=True, kw_only=True)
class Unmixed(Policy):
    """lam is always 1."""

    def draw_lam(self, count, generator=None):
        return torch.ones(count)

    def mask(self, x, pairing, hints, generator):
        return torch.ones(1, 1, *x.shape[-2:])


# Slow loops: the loss of prediction i whose positive is row j of the targets.


def dot(a: list[float], b: list[float]) -> float:
    lengths = math.hypot(*a) * math.hypot(*b)
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths


def cross_entropy(anchor, positive, others, tau: float) -> float:
    """-log softmax of the positive among itself and all others, on unit vectors."""
    top = math.exp(dot(anchor, positive) / tau)
    return -math.log(top / (top + sum(math.exp(dot(anchor, other) / tau) for other in others)))


def without(rows: list, place: int) -> list:
    return rows[:place] + rows[place + 1 :]


def slow_contrast(name: str, p: list, t: list, i: int, j: int, negatives: list, tau: float) -> float:
    if name in ("moco-v1", "moco-v2"):
        return cross_entropy(p[i], t[j], negatives, tau)
    if name == "simclr":  # both anchor sides, half because two directions are added
        rest = without(p, i) + without(t, j)
        return (cross_entropy(p[i], t[j], rest, tau) + cross_entropy(t[j], p[i], rest, tau)) / 2
    if name == "moco-v3":
        return 2 * tau * cross_entropy(p[i], t[j], without(t, j), tau)
    if name == "byol":
        return 2 - 2 * dot(p[i], t[j])
    if name == "simsiam":
        return -dot(p[i], t[j]) / 2
    assert name == "swav"
    total = math.log(sum(math.exp(s / tau) for s in p[i]))
    return -sum(code * (s / tau - total) for code, s in zip(t[j], p[i], strict=True)) / 2


def slow_mixed(name: str, output: Tensor, target: Tensor, parents: Parents, seen: Observed, tau: float):
    p, t = output.detach().tolist(), target.detach().tolist()
    negatives = [] if seen.negatives is None else seen.negatives.tolist()
    total = 0.0
    for i, (index, share) in enumerate(zip(*(field.tolist() for field in parents), strict=True)):
        for j, weight in zip(index, share, strict=True):
            total += weight * slow_contrast(name, p, t, i, j, negatives, tau)
    return total / len(p)


def observe(method: SelfSupervised, x: Tensor, index: Tensor) -> Observed:
    return method.observe(*views_of(x, index))


@pytest.mark.parametrize(
    "policy", [MixUp(per_sample=True), CutMix(), ThreeParents()], ids=lambda p: type(p).__name__
)
def test_value_mixed_loss_against_a_loop(selfsup, method_name, two_views, policy):
    method, (x, index) = selfsup(method_name), two_views()
    model, seen = SelfMixing(method, policy), observe(method, x, index)
    pairing = policy.draw(4)._replace(index=INDEX)
    views = views_of(x, index)[: len(seen.targets)]
    outputs, mixed = model.mix_views(views, pairing, seen, index)
    expected = sum(
        slow_mixed(method_name, output, target, each.family(), seen, method.tau)
        for output, target, each in zip(outputs, seen.targets, mixed, strict=True)
    )
    found = method.mixed_loss(outputs, mixed, seen.targets, seen)
    assert found.item() == pytest.approx(expected, rel=1e-3)
    for output, each in zip(outputs, mixed, strict=True):
        torch.testing.assert_close(output, method.predict(each.x), rtol=1e-4, atol=1e-5)


def test_value_one_view_weighs_as_much_as_two(selfsup, method_name, two_views):
    """The mixed view's own term, doubled where the clean loss has two directions."""
    method, (x, index) = selfsup(method_name), two_views()
    model, seen = SelfMixing(method, MixUp()), observe(method, x, index)
    outputs, mixed = model.mix_views(views_of(x, index)[:1], Pairing(torch.tensor([0.3]), INDEX), seen, index)
    one = slow_mixed(method_name, outputs[0], seen.targets[0], mixed[0].family(), seen, method.tau)
    found = method.mixed_loss(outputs, mixed, seen.targets, seen)
    assert found.item() == pytest.approx(len(seen.targets) * one, rel=1e-3)


@pytest.mark.parametrize(("views", "extra"), [(1, 1), (2, 2)])
def test_value_how_many_views_are_mixed(selfsup, two_views, views, extra):
    for name, directions in (("byol", 2), ("moco-v2", 1)):
        method, sizes = selfsup(name), []
        method.branch.register_forward_pre_hook(
            lambda module, inputs, sizes=sizes: sizes.append(len(inputs[0]))
        )
        SelfMixing(method, MixUp(), Terms(views=views))(*two_views())
        assert sizes == [4] * (directions + min(extra, directions))


@pytest.mark.parametrize("views", [1, 2])
def test_invariant_lam_one_mixes_nothing(selfsup, method_name, two_views, views):
    """A mixed view that is not mixed has the clean contrast of its own direction."""
    method, (x, index) = selfsup(method_name), two_views()
    if method_name in ("simclr", "swav"):  # batch norm: one pass for both views, or one for each
        method.eval()
    seen = observe(deepcopy(method), x, index)
    own = torch.arange(4)
    clean = [
        method.contrast(prediction, target, own, seen).mean()
        for prediction, target in zip(seen.predictions, seen.targets, strict=True)
    ]
    expected = sum(clean) if views == 2 else len(clean) * clean[0]
    model = SelfMixing(method, Unmixed(), Terms(base=0.0, views=views))
    torch.testing.assert_close(model(x, index).encoder, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("base", "weight"), [(0.3, 2.0), (0.0, 1.0)])
def test_value_clean_and_mixed_terms_are_weighed(selfsup, method_name, two_views, base, weight):
    method, (x, index) = selfsup(method_name), two_views()
    model = SelfMixing(method, CutMix(), Terms(base=base, mixed=weight))
    other = deepcopy(model)
    torch.manual_seed(5)
    found = model(x, index, 0.5)

    torch.manual_seed(5)
    seen = observe(other.method, x, index)
    pairing = CutMix().draw(4)
    outputs, mixed = other.mix_views(views_of(x, index)[: len(seen.targets)], pairing, seen, index)
    expected = base * other.method.loss(seen) + weight * other.method.mixed_loss(
        outputs, mixed, seen.targets, seen
    )
    torch.testing.assert_close(found.encoder, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.lam, mixed[0].pairing.lam)
    assert found.mixer is None and found.log is None


def test_value_targets_of_the_same_view(selfsup, method_name, two_views):
    method, (x, index) = selfsup(method_name), two_views()
    model = SelfMixing(method, MixUp(), Terms(base=0.0, same_view=True))
    other, (first, second) = deepcopy(model), views_of(x, index)
    torch.manual_seed(5)
    found = model(x, index)

    torch.manual_seed(5)
    seen = other.method.observe(first, second)
    targets = other.method.same_view_targets(first, second, seen)
    pairing = MixUp().draw(4)
    outputs, mixed = other.mix_views((first, second)[: len(targets)], pairing, seen, index)
    parts = zip(outputs, targets, mixed, strict=True)
    expected = sum(slow_mixed(method_name, o, t, m.family(), seen, method.tau) for o, t, m in parts)
    assert found.encoder.item() == pytest.approx(expected, rel=1e-3)


def test_value_both_views_have_the_same_box(selfsup, two_views):
    method, (x, index) = selfsup("byol"), two_views()
    for per_sample in (False, True):
        policy = CutMix(per_sample=per_sample)
        model, seen = SelfMixing(method, policy), observe(method, x, index)
        masks = []
        for _ in range(2):
            _, mixed = model.mix_views(views_of(x, index), policy.draw(4), seen, index)
            assert torch.equal(mixed[0].mask, mixed[1].mask)
            assert torch.equal(mixed[0].pairing.index, mixed[1].pairing.index)
            masks.append(mixed[0].mask)
        assert not torch.equal(*masks)


def test_gradient_reaches_exactly_the_online_parameters(selfsup, method_name, two_views, gradients):
    method = selfsup(method_name)
    model = SelfMixing(method, MixUp(), Terms(base=0.0))
    found = gradients(model(*two_views(6)).encoder, model)
    assert all(gradient is not None for gradient in found.values())
    assert not any(name.startswith("method.momentum") for name in found)


def test_value_the_queue_takes_clean_keys_only(selfsup, two_views):
    method, (x, index) = selfsup("moco-v2"), two_views()
    seen = observe(deepcopy(method), x, index)
    SelfMixing(method, MixUp(), Terms(base=0.0))(x, index)
    torch.testing.assert_close(method.queue.read()[:4], seen.targets[0])
    assert int(method.queue.count) == 4


def test_value_stores_and_codes_of_swav_see_clean_images_only(selfsup, two_views):
    plain = selfsup("swav", stored=4, store_from=0.0)
    mixing = SelfMixing(deepcopy(plain), MixUp())
    plain(*two_views())
    mixing(*two_views())
    for one, other in zip(plain.stores, mixing.method.stores, strict=True):
        torch.testing.assert_close(one.read(), other.read())
        assert int(other.count) == 4


# Who is mixed with whom.


def test_value_reversed_pairs(selfsup, two_views):
    model = SelfMixing(selfsup("moco-v2"), MixUp(), Terms(reversed_pairs=True))
    assert model.draw(5, torch.device("cpu")).index.tolist() == [4, 3, 2, 1, 0]


def test_value_the_own_image_shows_more(selfsup):
    model = SelfMixing(selfsup("moco-v2"), MixUp(per_sample=True), Terms(dominant=True))
    lam = model.draw(200, torch.device("cpu")).lam
    assert lam.min() >= 0.5 and 0.7 < lam.mean() < 0.8  # 3/4 for a uniform lam


@pytest.mark.parametrize("name", ["moco-v2", "simclr"])
def test_value_all_positives_in_one_softmax(selfsup, two_views, name):
    method, (x, index) = selfsup(name), two_views()
    model = SelfMixing(method, MixUp(), Terms(base=0.0, shared=True, views=1))
    seen = observe(deepcopy(method), x, index)
    outputs, mixed = model.mix_views(views_of(x, index)[:1], Pairing(torch.tensor([0.3]), INDEX), seen, index)
    expected = sum(
        share * method.shared_contrast(outputs[0], seen.targets[0], positive, seen).mean()
        for share, positive in ((0.3, torch.arange(4)), (0.7, INDEX))
    )
    found = method.mixed_loss(outputs, mixed, seen.targets, seen, shared=True)
    torch.testing.assert_close(found, len(seen.targets) * expected)
    assert not torch.allclose(found, method.mixed_loss(outputs, mixed, seen.targets, seen), rtol=1e-3)


# Every policy of the table.


def build(selfsup, name: str, policy: str) -> SelfMixing:
    """With a transformer for policies that read attention, a ResNet for those that name its layers."""
    encoder = None
    if policy in ATTENTIVE:
        encoder = build_encoder("small-vit", width=2, size=16)
    elif issubclass(MIXUPS[policy], LatentMixup):
        encoder = build_encoder("small-resnet", width=4)
    return SelfMixing(selfsup(name, encoder), MIXUPS[policy]())


@pytest.mark.parametrize("name", ["moco-v2", "byol"])
@pytest.mark.parametrize("policy", [name for name in MIXUPS if name not in REFUSED])
def test_value_every_policy_runs(selfsup, two_views, name, policy):
    model = build(selfsup, name, policy)
    modes = [module.training for module in model.modules()]
    losses = model(*two_views(5), progress=0.3)
    losses.total.backward()
    assert losses.total.isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)
    assert [module.training for module in model.modules()] == modes
    assert all(p.grad is None for p in model.method.momentum.parameters())


@pytest.mark.parametrize("policy", REFUSED)
def test_error_policies_that_need_labels(selfsup, two_views, policy):
    lacks = "a classifier as teacher" if policy == "supermix" else "class activation maps"
    message = f"{MIXUPS[policy].__name__} needs {lacks}.*, .* Choose another --mixup"
    with pytest.raises(ValueError, match=message):
        build(selfsup, "moco-v2", policy)(*two_views())


def test_error_attention_of_a_network_without_it(selfsup, two_views):
    with pytest.raises(ValueError, match="needs attention, which"):
        SelfMixing(selfsup("byol"), TransMix())(*two_views())


def test_value_a_layer_of_the_encoder_is_mixed(selfsup, two_views, gradients):
    policy = ManifoldMix(layers=("encoder.network.2",))
    model = SelfMixing(selfsup("simsiam"), policy)
    found = gradients(model(*two_views()).encoder, model)
    assert all(gradient is not None for gradient in found.values())


def test_value_saliency_is_what_the_contrast_depends_on(selfsup, method_name, two_views):
    method, (x, index) = selfsup(method_name), two_views()
    model, seen = SelfMixing(method, MIXUPS["puzzlemix"]()), observe(method, x, index)
    before = {name: value.clone() for name, value in method.state_dict().items()}
    first, target = views_of(x, index)[0], seen.targets[0]
    found = model.saliency(first, target, seen)
    assert found.shape == (4, 16, 16) and found.min() >= 0 and found.flatten(1).max(dim=1).values.min() > 0
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert all(p.grad is None for p in method.parameters())

    still = deepcopy(method).eval()
    images, step = first.clone(), 1e-2
    slope = []
    for sign in (1, -1):
        images[1, 2, 5, 7] = first[1, 2, 5, 7] + sign * step
        with torch.no_grad():
            slope.append(float(still.contrast(still.predict(images), target.detach(), index, seen).sum()))
    gradient = torch.autograd.functional.jacobian(
        lambda value: still.contrast(still.predict(value), target.detach(), index, seen).sum(), first
    )
    torch.testing.assert_close(found, gradient.square().mean(dim=1).sqrt(), rtol=1e-3, atol=1e-6)
    assert float(gradient[1, 2, 5, 7]) == pytest.approx((slope[0] - slope[1]) / (2 * step), rel=0.2, abs=1e-3)


def test_value_pixels_are_unnormalised(selfsup, two_views):
    x, index = two_views()
    stats = Stats((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
    mean, std = (torch.tensor(field).view(1, 3, 1, 1) for field in stats)
    model = SelfMixing(selfsup("moco-v2"), MIXUPS["saliencymix"](), stats=stats)
    seen = observe(model.method, x, index)
    hints = model.hints(((x - mean) / std)[:4], seen.targets[0], model.draw(4, x.device), seen, index)
    torch.testing.assert_close(hints.pixels, x[:4], rtol=1e-4, atol=1e-4)


def test_value_picture(selfsup, two_views):
    x, _ = two_views()
    pairing = Pairing(torch.tensor([0.4]), torch.arange(8).roll(1))
    mixed = SelfMixing(selfsup("moco-v2"), MixUp()).picture(x, torch.zeros(8).long(), pairing)
    torch.testing.assert_close(mixed.x, 0.4 * x + 0.6 * x.roll(1, 0))
    for policy in ("puzzlemix", *REFUSED):
        model = SelfMixing(selfsup("moco-v2"), MIXUPS[policy]())
        assert model.picture(x, torch.zeros(8).long(), pairing) is None


def test_invariant_a_seed_gives_one_result(selfsup, method_name, two_views):
    model = SelfMixing(selfsup(method_name), CutMix())
    found = []
    for each in (model, deepcopy(model)):
        torch.manual_seed(3)
        found.append(each(*two_views()).encoder)
    assert torch.equal(*found)


def test_value_after_step_and_groups_are_the_methods(selfsup):
    method = selfsup("simsiam")
    assert SelfMixing(method, MixUp()).parameter_groups().keys() == method.parameter_groups().keys()
    method = selfsup("moco-v2", momentum=0.0)
    SelfMixing(method, MixUp()).after_step(0.5)
    for online, copy in zip(method.branch.parameters(), method.momentum.parameters(), strict=True):
        torch.testing.assert_close(online.detach(), copy)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base": -1.0}, r"terms\.base must not be negative, got -1.0"),
        ({"base": 0.0, "mixed": 0.0}, r"terms\.base and terms\.mixed must not both be 0"),
        ({"views": 3}, r"terms\.views must be 1 or 2, got 3"),
    ],
)
def test_error_bad_terms(fields, message):
    with pytest.raises(ValueError, match=message):
        replace(Terms(), **fields)


@pytest.mark.parametrize("name", ["moco-v2", "moco-v3", "byol"])
def test_value_mixed_images_may_pass_first(selfsup, two_views, name):
    """The same loss in the other order; the running statistics end on the pass that came last."""
    orders, losses, statistics = (False, True), [], []
    for mixed_first in orders:
        torch.manual_seed(5)
        model = SelfMixing(selfsup(name), MixUp(), Terms(mixed_first=mixed_first))
        seen, network = [], model.method.encoder.network
        network.register_forward_pre_hook(lambda module, inputs, seen=seen: seen.append(inputs[0]))
        torch.manual_seed(6)
        losses.append(float(model(*two_views()).encoder))
        statistics.append([bool(torch.equal(x, two_views()[0][:4])) for x in seen])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    directions = len(statistics[0]) // 2
    assert statistics[0][0] and statistics[1].index(True) == directions


@pytest.mark.parametrize("name", ["simclr", "simsiam", "swav"])
def test_error_mixed_images_pass_first_where_targets_come_from_elsewhere(selfsup, two_views, name):
    model = SelfMixing(selfsup(name), MixUp(), Terms(mixed_first=True))
    with pytest.raises(ValueError, match=r"terms\.mixed_first needs a momentum branch"):
        model(*two_views())
