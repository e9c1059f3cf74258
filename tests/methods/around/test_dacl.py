"""DACL: noise in both views, and a loss that does not know of it."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from samix.core.pairing import Pairing
from samix.methods.around.dacl import DACL, DACLConfig, draw_noise


def record_inputs(module: nn.Module) -> list[tuple]:
    """The arguments of every call of a module."""
    calls: list[tuple] = []
    module.register_forward_pre_hook(lambda module, inputs: calls.append(inputs))
    return calls


def test_value_every_image_has_its_own_lam_and_another_partner():
    pairing = draw_noise(500, 0.9)
    assert pairing.lam.shape == (500,) and len(pairing.lam.unique()) > 400
    assert float(pairing.lam.min()) >= 0.9 and float(pairing.lam.max()) <= 1
    assert float(pairing.lam.mean()) == pytest.approx(0.95, abs=0.01)
    assert (pairing.index != torch.arange(500)).all()


def test_value_the_loss_is_the_methods_on_noisy_views(selfsup, method_name, two_views):
    method, (x, index) = selfsup(method_name), two_views(5)
    torch.manual_seed(3)
    found = DACL(deepcopy(method))(x, index, 0.5)
    torch.manual_seed(3)
    noisy = torch.empty_like(x)
    for view in range(2):
        lam, partner = draw_noise(5, 0.9)
        for i in range(5):
            own, other = x[5 * view + i], x[5 * view + int(partner[i])]
            noisy[5 * view + i] = float(lam[i]) * own + (1 - float(lam[i])) * other
        if view == 0:
            torch.testing.assert_close(found.lam, lam)
    expected = method(noisy, index, 0.5)
    torch.testing.assert_close(found.total, expected.total, rtol=1e-4, atol=1e-5)
    assert found.mixer is None and found.log is None


def test_value_views_are_disturbed_independently(selfsup, two_views):
    model, (x, index) = DACL(selfsup("simclr"), DACLConfig(alpha=0.5)), two_views(6)
    same = torch.cat([x[:6], x[:6]])
    calls = record_inputs(model.method)
    model(same, index)
    seen = calls[0][0]
    assert (seen[:6] != seen[6:]).flatten(1).any(dim=1).all()
    assert (seen != same).flatten(1).any(dim=1).all() and torch.equal(calls[0][1], index)


def test_gradient_reaches_what_the_method_trains(selfsup, method_name, two_views, gradients):
    model = DACL(selfsup(method_name))
    found = gradients(model(*two_views(6)).encoder, model)
    assert all(gradient is not None for gradient in found.values())
    assert not any("momentum" in name for name in found)


def test_value_the_queue_gets_the_keys_of_noisy_views(selfsup, two_views):
    model, (x, index) = DACL(selfsup("moco-v2"), DACLConfig(alpha=0.5)), two_views(4)
    plain = deepcopy(model.method)
    model(x, index)
    plain(x, index)
    assert int(model.method.queue.count) == 4
    assert not torch.allclose(model.method.queue.keys[:4], plain.queue.keys[:4])


def test_value_the_rest_is_the_methods(selfsup):
    model = DACL(selfsup("simsiam"))
    assert model.parameter_groups().keys() == model.method.parameter_groups().keys()
    momentum = DACL(selfsup("byol"))
    before = [p.clone() for p in momentum.method.momentum.parameters()]
    momentum.after_step(0.0)
    moved = zip(before, momentum.method.momentum.parameters(), strict=True)
    assert all(not torch.equal(old, new) for old, new in moved)


@pytest.mark.parametrize("lam, shown", [(0.2, 0.9), (0.95, 0.95), (1.0, 1.0)])
def test_value_a_picture_shows_a_lam_that_occurs(selfsup, lam, shown):
    x, index = torch.rand(3, 3, 16, 16), torch.tensor([1, 2, 0])
    mixed = DACL(selfsup("moco-v1")).picture(x, index, Pairing(torch.tensor([lam]), index))
    torch.testing.assert_close(mixed.x, shown * x + (1 - shown) * x[index])


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 2.0])
def test_error_alpha(alpha):
    with pytest.raises(ValueError, match=rf"mixup.alpha must lie in \[0, 1\), got {alpha}"):
        DACLConfig(alpha=alpha)
