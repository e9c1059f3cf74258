"""The evidence term: masks that keep what the frozen copy knows a picture by."""

import pytest
import torch
from torch import nn

from samix.contract import Context
from samix.core.pairing import Pairing
from samix.learned import (
    ClusterMixup,
    Clusters,
    InstanceMixup,
    LearnedMixup,
    MaskLoss,
    MixerConfig,
    SAMix,
    SAMixC,
)
from samix.learned.losses import evidence_loss
from samix.methods.around import SelfMixing
from samix.nn.encoder import Encoder
from samix.nn.zoo import Network


def test_value_the_loss_is_that_of_a_loop():
    torch.manual_seed(0)
    mask, energy = torch.rand(3, 1, 4, 4), torch.rand(3, 1, 4, 4)
    pairing = Pairing(torch.full((3,), 0.5), torch.tensor([2, 0, 1]))
    kept = []
    for i, j in enumerate(pairing.index.tolist()):
        first = sum(float(mask[i, 0, r, c] * energy[i, 0, r, c]) for r in range(4) for c in range(4))
        second = sum(float((1 - mask[i, 0, r, c]) * energy[j, 0, r, c]) for r in range(4) for c in range(4))
        kept.append((first / float(energy[i].sum()) + second / float(energy[j].sum())) / 2)
    assert evidence_loss(mask, energy, pairing).item() == pytest.approx(1 - sum(kept) / 3, abs=1e-6)


def test_value_blind_masks_keep_half():
    pairing = Pairing(torch.tensor([0.3]), torch.tensor([1, 0]))
    mask = torch.full((2, 1, 8, 8), 0.3)
    assert evidence_loss(mask, torch.rand(2, 1, 2, 2), pairing).item() == pytest.approx(0.5)


def test_value_no_evidence_anywhere_is_finite():
    loss = evidence_loss(
        torch.rand(2, 1, 8, 8), torch.zeros(2, 1, 2, 2), Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    )
    assert loss.isfinite()


def test_value_energy_is_the_norm_of_the_last_map():
    encoder = Network(width=4).build(32).eval()
    x = torch.rand(2, 3, 64, 64)
    norms = encoder.network.forward_features(x).square().sum(dim=1, keepdim=True).sqrt()
    assert torch.allclose(encoder.energy(x), norms - norms.amin(dim=(2, 3), keepdim=True), atol=1e-6)


def test_value_energy_of_a_network_that_does_not_tell_its_last_map():
    network = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
    encoder, x = Encoder(network, "1"), torch.rand(2, 3, 32, 32)
    assert torch.allclose(encoder.energy(x).amin(dim=(1, 2, 3)), torch.zeros(2))
    assert encoder.energy(x).shape == (2, 1, 8, 8)


def model(evidence: float) -> SAMix:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 4, 4),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 10),
    )
    settings = LearnedMixup(mixer=MixerConfig(balanced=True), mask=MaskLoss(evidence=evidence))
    return SAMix.wrap(network, layer="2", classes=10, settings=settings)


def test_gradient_of_the_evidence_reaches_the_mixer_alone():
    x, y = torch.rand(8, 3, 32, 32), torch.arange(8)
    grads = {}
    for weight in (0.0, 10.0):
        samix = model(weight)
        torch.manual_seed(1)
        samix(x, y, progress=0.0).total.backward()
        grads[weight] = {name: p.grad for name, p in samix.named_parameters() if p.grad is not None}
    for name in grads[0.0]:
        same = torch.equal(grads[0.0][name], grads[10.0][name])
        assert same != name.startswith("mixer.") or not grads[0.0][name].any(), name


@pytest.mark.parametrize("settings", [InstanceMixup, ClusterMixup])
def test_gradient_without_labels_reaches_the_mixer_alone(settings, selfsup, two_views):
    x, index = two_views(8)
    grads = {}
    for weight in (0.0, 10.0):
        torch.manual_seed(0)
        extra = {"clusters": Clusters(count=2, min_size=2)} if settings is ClusterMixup else {}
        mixup = settings(mixer=MixerConfig(balanced=True), mask=MaskLoss(evidence=weight), **extra)
        method = selfsup("moco-v2")
        samix = mixup.build(method, Context(8, 16, SelfMixing, pictures=8))
        if isinstance(samix, SAMixC):
            samix.begin_clusters(lambda branch: torch.randn(8, 8), torch.zeros(8, dtype=torch.long), seed=0)
        torch.manual_seed(1)
        samix(x, index, progress=0.0).total.backward()
        grads[weight] = {name: p.grad for name, p in samix.named_parameters() if p.grad is not None}
    assert any(name.startswith("mixer.") for name in grads[0.0])
    for name in grads[0.0]:
        same = torch.equal(grads[0.0][name], grads[10.0][name])
        assert same != name.startswith("mixer.") or not grads[0.0][name].any(), name


def test_value_masks_learn_to_keep_the_evidence_without_labels(selfsup, two_views):
    torch.manual_seed(0)
    mixup = InstanceMixup(mixer=MixerConfig(balanced=True), mask=MaskLoss(beta=0.0, evidence=10.0))
    samix = mixup.build(selfsup("moco-v2"), Context(8, 16, SelfMixing))
    x, index = two_views(8)
    optimizer = torch.optim.Adam(samix.mixer.parameters(), lr=0.03)
    pairing, first = Pairing(torch.tensor([0.5]), torch.arange(8).roll(1)), x[:8]

    def kept() -> float:
        with torch.no_grad():
            mask = samix.mixer(samix.maps(first), pairing, (16, 16))
            return 1 - evidence_loss(mask, samix.evidence(first), pairing).item()

    before = kept()
    for _ in range(25):
        optimizer.zero_grad()
        samix(x, index, progress=0.0).mixer.backward()
        optimizer.step()
    assert kept() > before + 0.02


def test_value_looking_for_evidence_leaves_no_trace():
    samix = model(1.0).train()
    before = {name: value.clone() for name, value in samix.momentum.state_dict().items()}
    samix.evidence(torch.rand(4, 3, 32, 32))
    assert samix.momentum.training
    assert all(torch.equal(value, before[name]) for name, value in samix.momentum.state_dict().items())


def test_error_settings():
    with pytest.raises(ValueError, match=r"mixup.mask.evidence.*-1"):
        MaskLoss(evidence=-1.0)
    with pytest.raises(ValueError, match=r"mixup.mask.zoom.*0"):
        MaskLoss(zoom=0.0)
