"""Mixup or TransMix, Mixup or TokenMix: who is drawn, with which lam, and what a recipe makes of them."""

import pytest
import torch

from samix.engine.training import POLICIES
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Supervised
from samix.mixups import MixUp, MixupTokenMix, MixupTransMix, Switch, TokenMix, TransMix
from samix.mixups.attended import MixupOr
from samix.nn.zoo import build_encoder


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_value_members_take_their_settings():
    policy = MixupTransMix(mixup_alpha=0.3, transmix_alpha=2.0, area_weight=0.0, switch_prob=0.2)
    assert policy.members == (MixUp(alpha=0.3), TransMix(alpha=2.0, area_weight=0.0))
    assert policy.odds == (0.8, 0.2) and policy.needs == ()
    policy = MixupTokenMix(keep=0.7, normalized=False)
    assert policy.members == (MixUp(alpha=0.8), TokenMix(keep=0.7, normalized=False))
    assert policy.odds == (0.5, 0.5) and policy.needs == ("attention",)


@pytest.mark.parametrize("policy", [MixupTransMix(), MixupTokenMix()])
def test_value_they_draw_as_the_switch_of_their_members(policy):
    switch = Switch(policies=policy.members)
    draws = [(policy.draw(6, seeded(seed)), switch.draw(6, seeded(seed))) for seed in range(20)]
    for one, other in draws:
        assert torch.equal(one.lam, other.lam) and torch.equal(one.index, other.index)
        assert torch.equal(one.member, other.member)
    assert {int(one.member) for one, _ in draws} == {0, 1}


@pytest.mark.parametrize("name", ["mixup+transmix", "mixup+tokenmix"])
def test_value_a_transformer_learns_with_them(name):
    encoder = build_encoder("small-vit", size=16)
    head = torch.nn.Linear(encoder.probe(16)[1], 4)
    model = Mixing(Supervised(encoder, head, 4), POLICIES[name]())
    x, y = torch.rand(6, 3, 16, 16), torch.arange(6) % 4
    torch.manual_seed(0)
    losses = [model(x, y, 0.0).total for _ in range(6)]
    assert all(bool(loss.isfinite()) for loss in losses)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"per_sample": True}, "mixup.per_sample must stay false"),
        ({"switch_prob": 1.5}, r"mixup.switch_prob must lie in \[0, 1\], got 1.5"),
        ({"mixup_alpha": 0.0}, "mixup.mixup_alpha must be positive, got 0.0"),
        ({"alpha": 0.2}, "mixup.alpha must stay 1"),
    ],
)
def test_error_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        MixupTransMix(**settings)


def test_error_a_base_names_nobody():
    with pytest.raises(TypeError, match=r"MixupOr must define other\(\)"):
        MixupOr().draw(2)
