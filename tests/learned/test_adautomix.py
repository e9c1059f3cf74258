"""AdAutoMix: what its Mixer is trained on, and against whom."""

import math

import pytest
import torch
from torch import Tensor, nn

from samix.contract import Context
from samix.core.mixed import blend
from samix.core.pairing import Pairing, draw_pairing
from samix.learned import LEARNED, AdAutoMix, AdAutoMixed, Adversary, AutoMixed, MixerConfig, SAMix
from samix.learned.adautomix import parent_similarity
from samix.losses import mixup_cross_entropy
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Objective, Supervised, linear_head
from samix.nn.zoo import build_encoder

CLASSES = 5
ALWAYS, NEVER = Adversary(prob=1.0), Adversary(prob=0.0)
LIVELY = MixerConfig(encoding="concat", attention="cross", content="linear", balanced=True, init_std=0.5)


def batch(count: int = 6) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 3, 16, 16), torch.arange(count) % CLASSES


def build(adversary: Adversary, **fields) -> AdAutoMix:
    """A small model whose masks are far from constant and whose every parameter matters."""
    method = Supervised(build_encoder("small-resnet", width=4), linear_head(32, CLASSES), CLASSES)
    for module in method.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)  # timm starts residual branches at 0
    nn.init.normal_(method.head.weight, std=0.3)
    settings = AdAutoMixed(adversary=adversary, **{"mixer": LIVELY} | fields)
    return settings.build(method, Context(16, 16, Mixing))


def test_value_similarity_against_a_loop():
    mixed, clean, index = torch.randn(3, 4), torch.randn(3, 4), torch.tensor([2, 0, 1])
    lam = torch.tensor([0.2, 0.5, 1.0])
    for i, found in enumerate(parent_similarity(mixed, clean, Pairing(lam, index)).tolist()):
        expected = 0.0
        for parent, share in ((i, float(lam[i])), (int(index[i]), 1 - float(lam[i]))):
            dot = sum(a * b for a, b in zip(mixed[i].tolist(), clean[parent].tolist(), strict=True))
            norms = math.hypot(*mixed[i].tolist()) * math.hypot(*clean[parent].tolist())
            expected += share * dot / norms
        assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_value_the_adversarial_objective(beta):
    model, (x, y) = build(Adversary(prob=1.0, beta=beta)), batch()
    with torch.no_grad():
        pairing = draw_pairing(len(x), 1.0)
        x_mix = blend(x, x[pairing.index], model.mixer(model.maps(x), pairing, (16, 16)))
        found = model.judge(x_mix, pairing, x, y).generation
        mixed, clean = model.momentum.logits(x_mix), model.momentum.logits(x)
    cross_entropy = mixup_cross_entropy(mixed, y, pairing)
    similarity = parent_similarity(mixed, clean, pairing).mean()
    torch.testing.assert_close(found.total, -beta * cross_entropy - (1 - beta) * similarity)
    torch.testing.assert_close(found.globally, cross_entropy)  # the log keeps the loss itself


def test_value_without_an_adversary_the_mixer_learns_as_automix():
    losses = build(NEVER)(*batch())
    torch.testing.assert_close(losses.mixer.detach(), losses.log.globally)


def test_value_a_coin_decides_whether_a_batch_is_adversarial():
    model, (x, y) = build(Adversary(prob=0.25, beta=1.0)), batch()
    x_mix, pairing = x, Pairing(torch.tensor([0.5]), torch.arange(6).roll(1))
    with torch.no_grad():
        signs = [float(model.judge(x_mix, pairing, x, y).generation.total) < 0 for _ in range(100)]
    assert 10 < sum(signs) < 40


@pytest.mark.parametrize("adversary", [ALWAYS, NEVER])
def test_gradient_of_each_loss_reaches_exactly_its_part(adversary):
    model = build(adversary)
    losses = model(*batch())
    mixer, method = list(model.mixer.parameters()), list(model.method.parameters())
    for loss, reached, other in ((losses.mixer, mixer, method), (losses.encoder, method, mixer)):
        found = torch.autograd.grad(loss, [*reached, *other], retain_graph=True, allow_unused=True)
        assert all(grad is not None for grad in found[: len(reached)])
        assert all(grad is None for grad in found[len(reached) :])
    losses.total.backward()
    assert all(parameter.grad is None for parameter in model.momentum.parameters())


@pytest.mark.parametrize(
    ("adversary", "harder", "nearer"),
    [
        (NEVER, False, None),
        (Adversary(prob=1.0, beta=1.0), True, None),
        (Adversary(prob=1.0, beta=0.0), None, True),
    ],
    ids=["automix", "hard", "near"],
)
def test_value_what_a_step_of_the_mixer_changes(adversary, harder, nearer):
    model, (x, y) = build(adversary), batch()
    pairing = Pairing(torch.tensor([0.4]), torch.arange(6).roll(1))
    z = model.maps(x).detach()

    def mixtures() -> Tensor:
        return blend(x, x[pairing.index], model.mixer(z, pairing, (16, 16)))

    def seen() -> tuple[float, float]:
        with torch.no_grad():
            mixed, clean = model.momentum.logits(mixtures()), model.momentum.logits(x)
        similarity = parent_similarity(mixed, clean, pairing).mean()
        return float(mixup_cross_entropy(mixed, y, pairing)), float(similarity)

    before = seen()
    model.judge(mixtures(), pairing, x, y).generation.total.backward()
    with torch.no_grad():
        for parameter in model.mixer.parameters():
            parameter -= 0.01 * parameter.grad / (parameter.grad.norm() + 1e-12)
    after = seen()
    assert harder is None or (after[0] > before[0]) == harder
    assert nearer is None or (after[1] > before[1]) == nearer


def test_invariant_masks_weigh_lam_so_that_an_adversary_cannot_lie():
    model, (x, _) = build(ALWAYS, mixer=AdAutoMixed().mixer), batch()
    pairing = draw_pairing(6, 1.0, per_sample=True)
    mask = model.paint(model.maps(x), pairing, (16, 16))
    assert torch.allclose(mask.mean(dim=(1, 2, 3)), pairing.lam.clamp(1e-3, 1 - 1e-3), atol=1e-3)


def test_value_wrap_builds_what_the_settings_describe():
    network = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Flatten(), nn.Linear(128, CLASSES))
    for name, kind in LEARNED.items():
        model = SAMix.wrap(network, "1", CLASSES, kind(), objective=Objective(), size=16)
        assert type(model) is (AdAutoMix if name == "adautomix" else SAMix)
        assert model.settings == kind()
    for kind in (SAMix, AdAutoMix):
        assert type(kind.wrap(network, "1", CLASSES, size=16)) is kind


def test_value_defaults():
    assert isinstance(AdAutoMixed(), AutoMixed) and not AdAutoMixed().per_sample
    assert AdAutoMixed().adversary == Adversary(prob=0.5, beta=0.3)


@pytest.mark.parametrize("name", ["prob", "beta"])
def test_error_bad_settings_are_refused_by_name(name):
    with pytest.raises(ValueError, match=rf"mixup\.adversary\.{name} must lie in \[0, 1\], got 1.5"):
        Adversary(**{name: 1.5})
