"""Mixup in turns with TransMix and TokenMix: members, odds, and what a recipe's file says of them."""

import pytest
import torch
import yaml
from samix.mixups.with_mixup import MixupTokenMix, MixupTransMix

from samix.commands.fields import from_yaml
from samix.engine.recipe import to_dict
from samix.engine.training import Training
from samix.mixups import MixUp, TokenMix, TransMix
from samix.runs.files import write_text


def test_value_members_and_odds():
    policy = MixupTransMix(mixup_alpha=0.3, transmix_alpha=0.7, area_weight=0.2, switch_prob=0.25)
    assert policy.members == (MixUp(alpha=0.3), TransMix(alpha=0.7, area_weight=0.2))
    assert policy.odds == (0.75, 0.25)
    tokens = MixupTokenMix(keep=0.6, normalized=False)
    assert tokens.members == (MixUp(alpha=0.8), TokenMix(keep=0.6, normalized=False))
    assert tokens.odds == (0.5, 0.5) and tokens.needs == ("attention",)


@pytest.mark.parametrize("policy", [MixupTransMix(), MixupTokenMix()])
def test_value_only_batches_of_the_other_need_attention(policy):
    draw = torch.Generator().manual_seed(0)
    for _ in range(20):
        pairing = policy.draw(4, draw)
        assert policy.needed(pairing) == policy.members[int(pairing.member)].needs
        chosen, _ = policy.choose_policy(pairing, draw)
        assert chosen == policy.members[int(pairing.member)]


@pytest.mark.parametrize("name", ["mixup+transmix", "mixup+tokenmix"])
def test_value_settings_go_into_a_file_and_back(name, tmp_path):
    recipe = Training(mixup=Training.choices["mixup"][name](switch_prob=0.25))
    write_text(tmp_path / "config.yaml", yaml.safe_dump(to_dict(recipe)))
    assert from_yaml(tmp_path / "config.yaml") == recipe


def test_error_per_pair():
    with pytest.raises(ValueError, match="mixup.per_sample must be false: one of the two does more"):
        MixupTransMix(per_sample=True)
    with pytest.raises(ValueError, match=r"mixup.switch_prob must lie in \[0, 1\], got 2"):
        MixupTokenMix(switch_prob=2.0)
