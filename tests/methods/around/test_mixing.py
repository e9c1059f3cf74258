"""Hand-made policies inside a method, over the whole table."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.mixups import MIXUPS, MixPro, Policy, TLAlign, TransMix
from samix.nn.zoo import build_encoder

Y = torch.tensor([0, 3, 1, 3, 2])


@pytest.fixture(params=MIXUPS.values(), ids=MIXUPS.keys())
def policy(request):
    return request.param()


def build(policy: Policy, **objective) -> Mixing:
    torch.manual_seed(0)
    attentive = isinstance(policy, TransMix | TLAlign | MixPro) or "attention" in policy.needs
    encoder = (
        build_encoder("small-vit", width=2, size=16) if attentive else build_encoder("small-resnet", width=4)
    )
    head = linear_head(12 if attentive else 32, 5)
    return Mixing(Supervised(encoder, head, 5, objective=Objective(**objective)), policy)


def images(batch: int = 5) -> torch.Tensor:
    """In [0, 1], as policies that look at pixels want them where nothing was normalised."""
    return torch.rand(batch, 3, 16, 16, generator=torch.Generator().manual_seed(1))


@pytest.mark.usefixtures("unchecked_shapes")
def test_error_labels_that_are_no_indices(policy):
    with pytest.raises(ValueError, match=r"class indices, shape \[5\].*got \[5, 1\].*squeeze"):
        build(policy)(images(), Y[:, None])


def test_value_the_loss_of_one_draw(policy):
    policy = replace(policy, jsd_weight=0.0) if policy.consistency else policy
    model, x = build(policy, clean_weight=0.5), images()
    torch.manual_seed(1)
    losses = deepcopy(model)(x, Y, 0.3)  # a copy, because a pass moves the batch norm that saliency sees
    torch.manual_seed(1)
    pairing = policy.draw(5)
    logits, mixed = policy.run(model.method.classifier, x, pairing, model.supplier(policy.needs, x, Y))
    torch.testing.assert_close(losses.total, model.method.mixed_loss(logits, mixed, x, Y))
    torch.testing.assert_close(losses.lam, mixed.pairing.lam)
    assert losses.mixer is None and losses.log is None


def test_value_behind_mix_until_the_clean_batch_is_learned_from(policy):
    policy = replace(policy, jsd_weight=0.0) if policy.consistency else policy
    model, x = build(policy, mix_until=0.6), images()
    before, after = (deepcopy(model)(x, Y, progress) for progress in (0.59, 0.6))
    assert before.lam is not None and after.lam is None
    torch.testing.assert_close(after.total, model.method(x, Y).total)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("objective", [{}, {"binary": True}, {"decoupled": 0.1}], ids=str)
def test_value_any_batch(policy, batch, objective):
    losses = build(policy, **objective)(images(batch), Y[:batch])
    assert losses.total.isfinite()


def test_gradient_reaches_encoder_and_head(policy):
    model = build(policy)
    model(images(), Y).total.backward()
    assert all(p.grad is not None for p in model.parameters())


def test_value_after_step_changes_nothing(policy):
    model = build(policy)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model.after_step(0.5)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_value_heads_and_parameters_are_the_methods(policy):
    model = build(policy).eval()
    x = images(2)
    assert torch.equal(model.heads(x)["mix_q"], model.method.logits(x))
    assert model.parameter_groups().keys() == {"encoder"}
    assert len(model.parameter_groups()["encoder"]) == len(list(model.parameters()))
