"""SDMP: how images are mixed, and the three terms against loops.

That two processes learn what one learns stands in tests/core/test_distributed.py, which starts two.
"""

import math
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samix.core.mixed import Parents
from samix.core.pairing import Pairing
from samix.losses.contrastive import over_parents
from samix.methods.around.sdmp import (
    POLICIES,
    SDMP,
    SDMPConfig,
    mirrored,
    mix_with,
    share_and_rest,
    shared_content,
)

SIZE = (12, 20)


def record_inputs(module: nn.Module) -> list[torch.Tensor]:
    """The images of every call of a module."""
    calls: list[torch.Tensor] = []
    module.register_forward_pre_hook(lambda module, inputs: calls.append(inputs[0].clone()))
    return calls


def box_of(mask: torch.Tensor) -> tuple[int, int, int, int]:
    """Top, left, height and width of the hole of [1, H, W], which must be a full rectangle."""
    hole = mask[0] == 0
    rows, columns = hole.any(dim=1).nonzero().flatten(), hole.any(dim=0).nonzero().flatten()
    top, left, height, width = int(rows[0]), int(columns[0]), len(rows), len(columns)
    assert int(hole.sum()) == height * width
    return top, left, height, width


def loop_mix(x: torch.Tensor, partner: torch.Tensor, mask: torch.Tensor, policy: str) -> torch.Tensor:
    """One image [3, H, W] pixel by pixel; a box is read from the mask."""
    out = x.clone()
    if policy == "mixup":
        return mask * x + (1 - mask) * partner
    top, left, height, width = box_of(mask)
    for h in range(height):
        for w in range(width):
            source = (top + h, left + w)
            if policy == "resizemix":
                source = (h * x.shape[1] // height, w * x.shape[2] // width)
            out[:, top + h, left + w] = partner[:, source[0], source[1]]
    return out


@pytest.mark.parametrize("policy", POLICIES)
def test_value_mixing_against_a_loop(policy):
    x, partner, lam = torch.rand(6, 3, *SIZE), torch.rand(6, 3, *SIZE), torch.linspace(0.1, 0.9, 6)
    mixed, mask = mix_with(x, partner, lam, policy)
    for i in range(6):
        torch.testing.assert_close(mixed[i], loop_mix(x[i], partner[i], mask[i], policy))
        assert not torch.equal(mixed[i], x[i])
        if policy != "mixup":
            sides = [math.floor(side * math.sqrt(1 - float(lam[i]))) for side in SIZE]
            assert list(box_of(mask[i])[2:]) == sides


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_value_boxes_move_but_their_area_follows_from_lam(policy):
    x, lam = torch.rand(200, 3, *SIZE), torch.linspace(0.1, 0.9, 200)
    (_, first), (_, second) = (mix_with(x, x.flip(0), lam, policy) for _ in range(2))
    assert torch.equal(first.mean(dim=(1, 2, 3)), second.mean(dim=(1, 2, 3)))
    assert not torch.equal(first, second)


def test_value_lam_keeps_away_from_0_and_1():
    lam = SDMPConfig().draw_lam(4000)
    assert float(lam.min()) >= 0.1 and float(lam.max()) <= 0.9
    assert float(lam.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(lam.std()) == pytest.approx(0.8 / math.sqrt(12), abs=0.01)  # Beta(1, 1) is uniform


def test_value_shared_content():
    lam, other = torch.tensor([0.3, 0.5, 1.0, 0.2]), torch.tensor([0.3, 0.5, 1.0, 0.8])
    torch.testing.assert_close(shared_content(lam, other), torch.tensor([0.6, 1.0, 0.0, 1.0]))


def test_value_partners_are_those_of_the_reversed_batch():
    for count in (4, 5):
        own, other = mirrored(count, torch.device("cpu"))
        assert own.tolist() == list(range(count)) and other.tolist() == list(reversed(range(count)))


def loop_nce(query: torch.Tensor, rows: torch.Tensor, positive: int, tau: float) -> float:
    logits = [float(query @ row) / tau for row in rows]
    return -math.log(math.exp(logits[positive]) / sum(math.exp(logit) for logit in logits))


@torch.no_grad()
def loop_loss(model: SDMP, x: torch.Tensor, count: int) -> float:
    """The three terms for images that are mixed here, one image at a time."""
    method, tau = model.method, model.method.tau
    order = torch.randperm(2).tolist()
    first, second = (x[view * count : (view + 1) * count] for view in order)
    lam = model.config.draw_lam(count)
    policy = model.config.policies[int(torch.randperm(len(model.config.policies))[0])]
    mixed = [mix_with(view, view.flip(0), lam, policy) for view in (first, second)]
    lam = mixed[0][1].mean(dim=(1, 2, 3))

    q, q_m = method.predict(first), method.predict(mixed[1][0])
    k_1, k_2, k_m = (F.normalize(method.momentum(v), dim=1) for v in (first, second, mixed[0][0]))
    total = 0.0
    for i in range(count):
        j = count - 1 - i

        def contrast(query: torch.Tensor, keys: torch.Tensor, positive: int) -> float:
            if method.queue is None:
                return 2 * tau * loop_nce(query, keys, positive, tau)
            return loop_nce(query, torch.cat([keys[positive : positive + 1], method.queue.keys]), 0, tau)

        lam_i, lam_j = float(lam[i]), float(lam[j])
        shared = min(lam_i, 1 - lam_j) + min(1 - lam_i, lam_j)
        total += contrast(q[i], k_2, i)
        total += (lam_i * contrast(q_m[i], k_1, i) + (1 - lam_i) * contrast(q_m[i], k_1, j)) / 2
        total += (contrast(q_m[i], k_m, i) + shared * contrast(q_m[i], k_m, j)) / (1 + shared) / 2
    return total / count


def loop_nt_xent(first: torch.Tensor, second: torch.Tensor, i: int, j: int, tau: float) -> float:
    """Row i of the first and row j of the second, each against all other rows of both."""
    total = 0.0
    for own, other, anchor, place, positive in (
        (first, second, first[i], i, j),
        (second, first, second[j], j, i),
    ):
        rest = [row for number, row in enumerate(own) if number != place]
        total += loop_nce(anchor, torch.stack([other[positive], *rest, *without(other, positive)]), 0, tau)
    return total


def without(rows: torch.Tensor, place: int) -> list[torch.Tensor]:
    return [row for number, row in enumerate(rows) if number != place]


@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize("policies", [*((p,) for p in POLICIES), POLICIES])
def test_value_simclr_against_a_loop(selfsup, two_views, policies, count):
    """The three terms with NT-Xent; mixed and clean images pass apart, gradients reach all of them."""
    model, (x, index) = SDMP(selfsup("simclr"), SDMPConfig(policies=policies)), two_views(count)
    torch.manual_seed(count)
    found = deepcopy(model)(x, index).encoder

    torch.manual_seed(count)
    order = torch.randperm(2).tolist()
    views = [x[view * count : (view + 1) * count] for view in order]
    drawn = model.config.draw_lam(count)
    policy = policies[int(torch.randperm(len(policies))[0])]
    (first_mixed, mask), (second_mixed, _) = (mix_with(view, view.flip(0), drawn, policy) for view in views)
    lam, tau = mask.mean(dim=(1, 2, 3)), model.method.tau
    with torch.no_grad():
        z_1, z_2 = model.method.predict(torch.cat(views)).chunk(2)
        z_m, q_m = model.method.predict(torch.cat([first_mixed, second_mixed])).chunk(2)
    total = 0.0
    for i in range(count):
        j, lam_i, lam_j = count - 1 - i, float(lam[i]), float(lam[count - 1 - i])
        shared = min(lam_i, 1 - lam_j) + min(1 - lam_i, lam_j)
        total += loop_nt_xent(z_1, z_2, i, i, tau)
        total += lam_i * loop_nt_xent(q_m, z_1, i, i, tau) / 2
        total += (1 - lam_i) * loop_nt_xent(q_m, z_1, i, j, tau) / 2
        both = loop_nt_xent(q_m, z_m, i, i, tau) + shared * loop_nt_xent(q_m, z_m, i, j, tau)
        total += both / (1 + shared) / 2
    assert float(found.detach()) == pytest.approx(total / count, rel=1e-4)


@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize("policies", [*((p,) for p in POLICIES), POLICIES])
@pytest.mark.parametrize("name", ["moco-v1", "moco-v2", "moco-v3"])
def test_value_the_loss_against_a_loop(selfsup, two_views, name, policies, count):
    model, (x, index) = SDMP(selfsup(name), SDMPConfig(policies=policies)), two_views(count)
    torch.manual_seed(count)
    found = deepcopy(model)(x, index, 0.1)
    torch.manual_seed(count)
    assert float(found.encoder.detach()) == pytest.approx(loop_loss(model, x, count), rel=1e-4)
    assert found.lam.shape == (count,) and found.mixer is None


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("count", [4, 5])
def test_value_images_are_mixed_and_views_change_places(selfsup, two_views, policy, count):
    """The last public release of the original never pastes."""
    model, (x, index) = SDMP(selfsup("moco-v3"), SDMPConfig(policies=(policy,), margin=0.2)), two_views(count)
    online, slow = record_inputs(model.method.branch), record_inputs(model.method.momentum)
    swapped = set()
    for _ in range(12):
        model(x, index)
        (first, second_mixed), (again, second, first_mixed) = online[-2:], slow[-3:]
        swapped.add(torch.equal(first, x[count:]))
        assert torch.equal(first, again)
        assert any(torch.equal(torch.cat(views), x) for views in ((first, second), (second, first)))
        for clean, mixed in ((first, first_mixed), (second, second_mixed)):
            changed = (clean != mixed).flatten(1).any(dim=1)
            alone = (torch.arange(count) == count - 1 - torch.arange(count)) & (policy != "resizemix")
            assert torch.equal(changed, ~alone)
    assert swapped == {True, False}


def policy_of(clean: torch.Tensor, mixed: torch.Tensor) -> str:
    """The policy that made mixtures of a batch and its mirror image, by what it left of both."""
    kept, pasted = mixed == clean, mixed == clean.flip(0)
    if not kept.any():
        return "mixup"
    return "cutmix" if (kept | pasted).all() else "resizemix"


def test_value_every_policy_is_drawn(selfsup, two_views):
    model, (x, index) = SDMP(selfsup("moco-v3")), two_views()
    online, slow = record_inputs(model.method.branch), record_inputs(model.method.momentum)
    for _ in range(20):
        model(x, index)
    drawn = [policy_of(clean, mixed) for clean, mixed in zip(slow[::3], slow[2::3], strict=True)]
    again = [policy_of(clean, mixed) for clean, mixed in zip(slow[1::3], online[1::2], strict=True)]
    assert set(drawn) == set(POLICIES) and len(drawn) == 20
    assert drawn == again, "the same in both views"


@pytest.mark.parametrize("name", ["moco-v1", "moco-v2"])
def test_value_only_clean_keys_enter_the_queue(selfsup, two_views, name):
    model, (x, index) = SDMP(selfsup(name)).eval(), two_views()
    online, places = record_inputs(model.method.branch), set()
    for step in range(4):  # the queue has 16 places
        model(x, index)
        place = int(torch.equal(online[-2], x[:4]))  # of the view that was not asked with
        places.add(place)
        with torch.no_grad():
            expected = F.normalize(model.method.momentum(x[4 * place : 4 * place + 4]), dim=1)
        assert int(model.method.queue.count) == 4 * (step + 1)
        torch.testing.assert_close(model.method.queue.keys[4 * step : 4 * step + 4], expected)
    assert places == {0, 1}


@pytest.mark.parametrize("name", ["simclr", "moco-v1", "moco-v2", "moco-v3"])
def test_gradient_reaches_exactly_the_online_parameters(selfsup, two_views, gradients, name):
    model = SDMP(selfsup(name))
    found = gradients(model(*two_views(6)).encoder, model)
    assert not any(part in parameter for parameter in found for part in ("momentum", "queue"))
    assert all(gradient is not None for gradient in found.values())


def test_value_weighted_positives_share_the_mass_as_lam_says():
    """lam CE_i + (1 - lam) CE_j is smallest at p = lam; -log(lam p_i + (1 - lam) p_j) is not."""
    lam = torch.tensor([0.7])
    logits = torch.tensor([[0.7, 0.3]]).log().requires_grad_()

    def contrast(positive: torch.Tensor) -> torch.Tensor:
        return -logits.log_softmax(dim=1).gather(1, positive[:, None])[:, 0]

    ours = over_parents(contrast, Parents(torch.tensor([[0, 1]]), share_and_rest(lam)))
    last = -(share_and_rest(lam) * logits.softmax(dim=1)).sum().log()
    (at_optimum,), (elsewhere,) = (torch.autograd.grad(loss, logits) for loss in (ours, last))
    torch.testing.assert_close(at_optimum, torch.zeros(1, 2), atol=1e-6, rtol=0)
    assert float(elsewhere[0, 0]) < -0.01 and float(elsewhere[0, 1]) > 0.01  # on to p = 1 for the heavier


@pytest.mark.parametrize("policy", POLICIES)
def test_value_a_picture(selfsup, policy):
    x, index = torch.rand(3, 3, 16, 16), torch.tensor([1, 2, 0])
    model = SDMP(selfsup("moco-v3"), SDMPConfig(policies=(policy,)))
    mixed = model.picture(x, index, Pairing(torch.tensor([0.0]), index))
    torch.testing.assert_close(mixed.x[0], loop_mix(x[0], x[1], mixed.mask[0], policy))
    assert torch.equal(mixed.pairing.index, index) and float(mixed.pairing.lam[0]) >= 0.1 - 1e-6


def test_value_the_rest_is_the_methods(selfsup):
    model = SDMP(selfsup("moco-v3"))
    assert model.parameter_groups().keys() == {"encoder"} and model.config == SDMPConfig()
    before = [p.clone() for p in model.method.momentum.parameters()]
    model.after_step(0.0)
    moved = zip(before, model.method.momentum.parameters(), strict=True)
    assert all(not torch.equal(old, new) for old, new in moved)


@pytest.mark.parametrize("name", ["byol", "simsiam", "swav"])
def test_error_other_methods(selfsup, name):
    method = selfsup(name)
    with pytest.raises(ValueError, match=rf"{type(method).__name__} has none. Choose SimCLR or MoCo"):
        SDMP(method)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"policies": ()}, "mixup.policies must name at least one of mixup, cutmix, resizemix"),
        ({"policies": ("cutmx",)}, "unknown mixup.policies 'cutmx'. Did you mean 'cutmix'"),
        ({"alpha": 0.0}, "mixup.alpha must be positive, got 0.0"),
        ({"margin": 0.5}, r"mixup.margin must lie in \[0, .5\), got 0.5"),
    ],
)
def test_error_config(fields, message):
    with pytest.raises(ValueError, match=message):
        SDMPConfig(**fields)
