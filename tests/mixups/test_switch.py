"""Switching between policies: who is drawn, with which lam, and Mixup+CutMix as timm switches them."""

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing, draw_derangement
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Supervised
from samix.mixups.attentivemix import AttentiveMix
from samix.mixups.base import Hints, Policy
from samix.mixups.cutmix import CutMix
from samix.mixups.manifoldmix import ManifoldMix
from samix.mixups.mixup import MixUp
from samix.mixups.switch import Choice, MixupCutMix, Switch
from samix.mixups.tokenmix import TokenMix
from samix.mixups.transmix import TransMix
from samix.nn.zoo import build_encoder


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def images(batch: int = 4, size: tuple[int, int] = (12, 20), dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(batch, 3, *size, generator=torch.Generator().manual_seed(3)).to(dtype)


def is_box(mask: Tensor) -> bool:
    return bool(((mask == 0) | (mask == 1)).all())


def test_value_the_batch_is_its_members():
    """What the member would do alone with the same lam and the same generator."""
    x, policy, seen = images(), MixupCutMix(), set()
    for seed in range(20):
        draw = torch.Generator().manual_seed(seed)
        pairing = policy.draw(4, draw)
        state = draw.get_state()
        mixed = policy(x, pairing, None, draw)
        draw.set_state(state)
        expected = policy.members[int(pairing.member)](x, Pairing(*pairing), None, draw)
        assert torch.equal(mixed.x, expected.x) and torch.equal(mixed.pairing.lam, expected.pairing.lam)
        assert is_box(mixed.mask) == (int(pairing.member) == 1)
        seen.add(int(pairing.member))
    assert seen == {0, 1}


def test_value_one_member_is_drawn_as_multinomial_draws_it():
    """The same draw, and the generator is left the same, so that seeds keep their meaning."""
    odds = (0.2, 0.5, 0.3)
    policy = Switch(policies=(MixUp(), CutMix(), ManifoldMix()), probabilities=odds)
    ours, theirs = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    for _ in range(200):
        drawn = torch.multinomial(torch.tensor(odds), 1, replacement=True, generator=theirs)
        assert torch.equal(policy.choose(1, ours), drawn)
    assert torch.equal(ours.get_state(), theirs.get_state())


@pytest.mark.parametrize("member", [MixUp(alpha=0.4), MixUp(prob=0.5), CutMix(per_sample=True)], ids=str)
def test_value_a_batch_draws_what_its_member_draws_and_partners_after_that(member):
    policy = Switch(policies=(member, member))
    ours, theirs = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    for _ in range(20):
        lam, index = policy.draw(5, ours)
        policy.choose(1, theirs)
        assert torch.equal(lam, member.draw(5, theirs).lam)
        assert torch.equal(index, draw_derangement(5, theirs))


def test_value_the_pairs_are_their_members():
    """One mask per pair: lam everywhere where mixup was drawn, a box where CutMix was."""
    x, policy = images(40), MixupCutMix(per_sample=True)
    draw = torch.Generator().manual_seed(0)
    pairing = policy.draw(40, draw)
    state = draw.get_state()
    mixed = policy(x, pairing, None, draw)
    draw.set_state(state)
    boxes = CutMix()(x, Pairing(*pairing), None, draw).mask
    for i in range(40):
        lam = torch.full((1, 12, 20), float(pairing.lam[i]))
        expected = boxes[i] if int(pairing.member[i]) else lam
        assert torch.equal(mixed.mask[i], expected)
        torch.testing.assert_close(mixed.x[i], expected * x[i] + (1 - expected) * x[pairing.index[i]])
        assert float(mixed.pairing.lam[i]) == pytest.approx(float(expected.mean()), abs=1e-6)
    assert 8 < int(pairing.member.sum()) < 32 and len(pairing.lam.unique()) == 40


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("switch_prob", [0.0, 0.3, 1.0])
def test_value_how_often_cutmix_is_drawn(switch_prob, per_sample):
    policy = MixupCutMix(switch_prob=switch_prob, per_sample=per_sample)
    draw = torch.Generator().manual_seed(0)
    count, rounds = (200, 1) if per_sample else (1, 200)
    share = torch.cat([policy.draw(count, draw).member for _ in range(rounds)]).float().mean()
    assert float(share) == pytest.approx(switch_prob, abs=4 * (switch_prob * (1 - switch_prob) / 200) ** 0.5)


@pytest.mark.parametrize("per_sample", [False, True])
def test_value_every_member_draws_lam_its_own_way(per_sample):
    """Var of Beta(a, a) is 1 / (4 (2 a + 1)): the two alphas must not be exchanged."""
    policy = MixupCutMix(mixup_alpha=0.2, cutmix_alpha=8.0, per_sample=per_sample)
    draw = torch.Generator().manual_seed(0)
    draws = [policy.draw(4000, draw)] if per_sample else [policy.draw(2, draw) for _ in range(400)]
    lam, member = torch.cat([d.lam for d in draws]), torch.cat([d.member for d in draws])
    for position, alpha in enumerate((0.2, 8.0)):
        drawn = lam[member == position]
        assert float(drawn.var()) == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.2)
        assert float(drawn.mean()) == pytest.approx(0.5, abs=0.08)


def test_value_a_member_may_draw_without_beta():
    policy = Switch(policies=(TokenMix(keep=0.25), MixUp(alpha=50.0)))
    draws = [policy.draw(2, torch.Generator().manual_seed(seed)) for seed in range(40)]
    assert {float(d.lam) == 0.25 for d in draws if int(d.member) == 0} == {True}
    assert {float(d.lam) > 0.25 for d in draws if int(d.member) == 1} == {True}


def test_value_a_member_keeps_its_own_probability_and_lam_per_pair():
    policy = Switch(policies=(CutMix(prob=0.0), MixUp(per_sample=True)))
    for seed in range(20):
        pairing = policy.draw(5, torch.Generator().manual_seed(seed))
        if int(pairing.member) == 0:
            assert pairing.lam.tolist() == [1.0]
        else:
            assert len(pairing.lam.unique()) == 5


@pytest.mark.parametrize("per_sample", [False, True])
def test_value_prob_leaves_batches_or_pairs_as_they_are(per_sample):
    policy, draw = MixupCutMix(prob=0.25, per_sample=per_sample), torch.Generator().manual_seed(0)
    draws = [policy.draw(200, draw)] if per_sample else [policy.draw(2, draw) for _ in range(200)]
    share = (torch.cat([d.lam for d in draws]) == 1).float().mean()
    assert float(share) == pytest.approx(0.75, abs=0.08)


@pytest.mark.parametrize("lam", [0.2, 0.7])
def test_value_a_given_lam_is_taken_by_whoever_is_drawn(lam):
    """A sweep hands over bare pairings: the member is drawn then, the lam stays."""
    x, draw, boxes = images(size=(32, 32)), torch.Generator().manual_seed(0), []
    for _ in range(60):
        mask = MixupCutMix()(x, Pairing(torch.tensor([lam]), ring(4)), None, draw).mask
        boxes.append(is_box(mask))
        if boxes[-1]:
            assert float((mask == 0).float().mean()) <= 1 - lam
        else:
            assert torch.equal(mask, torch.full_like(mask, lam))
    assert 15 <= sum(boxes) <= 45


def test_value_a_given_lam_per_pair():
    lam = torch.linspace(0.1, 0.9, 30)
    one = MixupCutMix()(images(30), Pairing(lam, ring(30)))
    assert len({is_box(mask) for mask in one.mask}) == 1, "one member for the batch unless per_sample"
    own = MixupCutMix(per_sample=True)(images(30), Pairing(lam, ring(30)))
    assert {is_box(mask) for mask in own.mask} == {True, False}


def test_value_a_choice_is_a_pairing_and_keeps_its_members():
    choice = MixupCutMix(switch_prob=1.0).draw(3)
    lam, index = choice
    assert isinstance(choice, Pairing) and torch.equal(lam, choice.lam) and torch.equal(index, choice.index)
    changed = choice._replace(lam=torch.tensor([0.5]))
    assert isinstance(changed, Choice) and changed.member.tolist() == [1] and changed.lam.tolist() == [0.5]
    assert is_box(MixupCutMix()(images(3), changed).mask)
    assert Choice(lam, index).member is None


class Doubling(Policy):
    """A member that reaches into the network's outputs."""

    def mask(self, x: Tensor, pairing: Pairing, hints: Hints, generator: torch.Generator | None) -> Tensor:
        return torch.ones(1, 1, *x.shape[-2:])

    def mix_inside(self, network, x, pairing, hints, generator):
        outputs, mixed = super().mix_inside(network, x, pairing, hints, generator)
        return 2 * outputs, mixed


def test_value_run_is_the_members():
    x, network = images(), nn.Flatten()
    for odds in ((1.0, 0.0), (0.0, 1.0)):
        policy = Switch(policies=(MixUp(), Doubling()), probabilities=odds)
        outputs, mixed = policy.run(network, x, policy.draw(4))
        assert torch.equal(outputs, (1 + odds[1]) * mixed.x.flatten(1))


def test_value_picture_is_the_members():
    """TransMix cannot mix images alone, but can be looked at."""
    policy = Switch(policies=(TransMix(),))
    picture = policy.picture(images(), Pairing(torch.tensor([0.3]), ring(4)))
    assert is_box(picture.mask) and policy.masks_pairs
    with pytest.raises(ValueError, match="cannot mix without the network"):
        policy(images(), Pairing(torch.tensor([0.3]), ring(4)))
    pairs = MixupCutMix(per_sample=True)
    assert {is_box(mask) for mask in pairs.picture(images(30), pairs.draw(30)).mask} == {True, False}
    assert not Switch(policies=(MixUp(), ManifoldMix())).masks_pairs


def test_value_run_per_pair():
    policy = MixupCutMix(per_sample=True)
    outputs, mixed = policy.run(nn.Flatten(), images(9), policy.draw(9))
    assert torch.equal(outputs, mixed.x.flatten(1)) and len(mixed.mask) == 9


def test_value_needs_are_those_of_all_members():
    assert Switch(policies=(MixUp(), TokenMix(), TokenMix(random=True))).needs == ("attention",)
    assert Switch(policies=(MixUp(), CutMix())).needs == () == MixupCutMix().needs


def test_value_transmix_and_tokenmix_as_members_inside_a_method():
    """The recipes of both papers: mixup in every other batch."""
    torch.manual_seed(1)
    encoder = build_encoder("deit-s", size=16, patch_size=8, depth=6, embed_dim=24, num_heads=3)
    method = Supervised(encoder, nn.Linear(24, 5), 5)
    model = Mixing(method, Switch(policies=(MixUp(alpha=0.8), TransMix(), TokenMix())))
    counts = set()
    for _ in range(12):
        losses = model(torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3]))
        assert losses.total.isfinite()
        counts.add(len(losses.lam))
    assert counts == {1, 4}, "mixup weighs the batch, attention every image"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_lam_one_keeps_the_first_image(per_sample, dtype):
    x, lam = images(6, dtype=dtype), torch.tensor([1.0, 0.3, 1.0, 0.3, 1.0, 0.3])
    for _ in range(10):
        mixed = MixupCutMix(per_sample=per_sample)(x, Pairing(lam, ring(6)))
        assert torch.equal(mixed.x[::2], x[::2]) and (mixed.pairing.lam[::2] == 1).all()
        assert mixed.x.dtype == dtype and mixed.pairing.lam.dtype == torch.float32


@pytest.mark.parametrize("per_sample", [False, True])
def test_invariant_a_seed_fixes_the_result(per_sample):
    x, policy = images(6), MixupCutMix(per_sample=per_sample)
    before, copy = torch.get_rng_state(), x.clone()

    def run(seed: int) -> Tensor:
        draw = torch.Generator().manual_seed(seed)
        return policy(x, policy.draw(6, draw), None, draw).x

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state()) and torch.equal(x, copy)


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("size", [(8, 8), (12, 20)])
def test_shape(batch, size, per_sample):
    policy = MixupCutMix(per_sample=per_sample)
    pairing = policy.draw(batch)
    assert len(pairing.lam) == len(pairing.member) == (batch if per_sample else 1)
    mixed = policy(images(batch, size), pairing)
    assert mixed.x.shape == (batch, 3, *size)
    assert mixed.mask.shape == (batch if per_sample else 1, 1, *size)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mixup_alpha": 0.0}, "mixup.mixup_alpha must be positive, got 0.0"),
        ({"cutmix_alpha": -1.0}, "mixup.cutmix_alpha must be positive, got -1.0"),
        ({"switch_prob": 1.5}, r"mixup.switch_prob must lie in \[0, 1\], got 1.5"),
        ({"prob": 2.0}, r"mixup.prob must lie in \[0, 1\]"),
        ({"alpha": 0.2}, r"mixup.alpha must stay 1 \(set alpha of the members instead\), got 0.2"),
        ({"alpha": -0.5}, "mixup.alpha must be positive, got -0.5"),
    ],
)
def test_error_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        MixupCutMix(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policies": ()}, r"mixup.policies must name at least one policy, got \(\)"),
        ({"policies": (MixUp(),), "probabilities": (0.5, 0.5)}, r"one value per policy \(1\), got 2"),
        ({"policies": (MixUp(), CutMix()), "probabilities": (0.5, 0.4)}, "sum to 1"),
        ({"policies": (MixUp(), CutMix()), "probabilities": (1.5, -0.5)}, "must not be negative"),
        ({"policies": (MixUp(), MixupCutMix())}, "must not hold another MixupCutMix"),
        ({"policies": (MixUp(), TransMix()), "per_sample": True}, "TransMix does more than mask"),
        ({"policies": (MixUp(), TokenMix()), "per_sample": True}, "TokenMix does more than mask"),
    ],
)
def test_error_composition(settings, message):
    with pytest.raises(ValueError, match=message):
        Switch(**settings)


def test_error_a_member_without_its_hint():
    with pytest.raises(ValueError, match="TokenMix needs attention"):
        Switch(policies=(TokenMix(),))(images(), Pairing(torch.tensor([0.5]), ring(4)))


def test_value_only_members_that_were_drawn_are_asked_for_masks():
    """What the others need may be missing."""
    policy = Switch(policies=(MixUp(), AttentiveMix()), per_sample=True)
    pairing = Choice.of(torch.full((4,), 0.3), ring(4), torch.zeros(4, dtype=torch.long))
    assert policy.needed(pairing) == ()
    assert torch.equal(policy.mask(images(), pairing, Hints(), None), torch.full((4, 1, 12, 20), 0.3))
