"""The Mixer whose masks weigh lam by construction."""

import math

import pytest
import torch

from samix.core.pairing import Pairing
from samix.learned.balanced import BalancedMixer, bound_spread
from samix.learned.mixer import MixerConfig


def balanced(**options) -> BalancedMixer:
    torch.manual_seed(0)
    mixer = MixerConfig(balanced=True, init_std=1.0, **options).build(channels=6)
    assert isinstance(mixer, BalancedMixer)
    return mixer.eval()


def maps(seed: int = 1) -> torch.Tensor:
    return torch.randn(4, 6, 5, 5, generator=torch.Generator().manual_seed(seed))


PAIRS = Pairing(torch.tensor([0.05, 0.3, 0.5, 0.9]), torch.tensor([1, 2, 3, 0]))


@pytest.mark.parametrize("encoding", ["adaptive", "concat", "none"])
@pytest.mark.parametrize("attention", ["mixing", "mixing-two", "cross"])
def test_value_masks_weigh_lam_before_any_adjusting(encoding, attention):
    mask = balanced(encoding=encoding, attention=attention)(maps(), PAIRS, (40, 33))
    assert mask.shape == (4, 1, 40, 33)
    assert torch.allclose(mask.mean(dim=(1, 2, 3)), PAIRS.lam, atol=1e-3)
    assert mask.std(dim=(1, 2, 3)).min() > 0.01


def test_value_both_sides_of_a_pair_agree():
    mixer, z = balanced(), maps()[:2]
    there = mixer(z, Pairing(torch.tensor([0.3, 0.7]), torch.tensor([1, 0])), (20, 20))
    assert torch.allclose(there[0], 1 - there[1], atol=1e-4)


@torch.no_grad()
def test_value_votes_are_those_of_a_loop():
    mixer, z = balanced(encoding="none"), maps()
    votes = mixer.vote(z, z[PAIRS.index], PAIRS.lam)
    for row, partner in enumerate(PAIRS.index.tolist()):

        def read(first, second):
            content = mixer.content(first[None])[0, 0].flatten()
            query = mixer.attention.query(torch.cat([first, second])[None])[0].flatten(1)
            out = []
            for n in range(query.shape[1]):
                scores = [float(query[:, n] @ query[:, m]) / math.sqrt(len(query)) for m in range(25)]
                weights = [math.exp(score - max(scores)) for score in scores]
                total = sum(w * float(c) for w, c in zip(weights, content, strict=True))
                out.append(total / sum(weights))
            return torch.tensor(out).view(5, 5)

        expected = read(z[row], z[partner]) - read(z[partner], z[row])
        assert torch.allclose(votes[row, 0], expected, atol=1e-5)


def test_gradient_reaches_every_parameter():
    mixer, z = balanced().train(), maps()
    weight = torch.rand(4, 1, 20, 20, generator=torch.Generator().manual_seed(2))
    (mixer(z, PAIRS, (20, 20)) * weight).sum().backward()
    missing = [name for name, p in mixer.named_parameters() if p.grad is None or not p.grad.any()]
    # What is added to all contents alike cancels in the difference, and batch norm takes out the rest.
    assert set(missing) <= {"content.0.bias", "content.4.bias", "encoding.gamma"}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
def test_property_spread_is_bounded_and_order_is_kept(scale):
    logits = scale * maps()[:, :1]
    bounded = bound_spread(logits, limit=4.0)
    assert bounded.std(dim=(1, 2, 3), unbiased=False).max() <= 4.0 + 1e-4
    assert bounded.mean(dim=(1, 2, 3)).abs().max() < 1e-4
    assert torch.equal(bounded.flatten(1).argsort(), logits.flatten(1).argsort())


def test_value_a_flat_map_gives_plain_mixup():
    mask = balanced()(torch.ones(2, 6, 5, 5), Pairing(torch.tensor([0.3]), torch.tensor([1, 0])), (10, 10))
    assert torch.allclose(mask, torch.full_like(mask, 0.3), atol=1e-4)


def test_error_limit():
    with pytest.raises(ValueError, match=r"mixer.limit.*0"):
        MixerConfig(limit=0.0)
