"""The linear probe: it learns, the encoder does not, and the seed decides everything."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from samix.data.datasets import IMAGENET_STATS, Data, ImageSet, Split
from samix.evaluate.linear import PROTOCOLS, LinearProbe, fit, linear_probe
from samix.methods.supervised import linear_head

DATA = Data(size=8)
SHORT = LinearProbe(epochs=12, batch_size=16, lr=1.0, milestones=(8,), view="none")


def coloured(count: int, seed: int) -> ImageSet:
    """Noisy pictures in three plain colours: the mean colour tells the class."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(3).repeat(count // 3)
    pictures = torch.randint(0, 100, (len(labels), 3, 8, 8), generator=generator, dtype=torch.uint8)
    pictures[torch.arange(len(labels)), labels] += 100
    return ImageSet(pictures, labels, ("red", "green", "blue"))


SPLIT = Split(coloured(48, 0), coloured(24, 1), *IMAGENET_STATS)


class Watched(nn.Module):
    """Mean colours behind batch-norm; counts the pictures it sees and whether it was ever in training."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.weight, self.pictures = nn.BatchNorm2d(3), nn.Parameter(torch.eye(3)), 0

    def forward(self, x):
        assert not self.training and not torch.is_grad_enabled()
        self.pictures += len(x)
        return self.norm(x).mean(dim=(2, 3)) @ self.weight


@pytest.mark.parametrize("view", ["none", "crop-flip", "resized-crop"])
def test_value_learns_a_separable_set(view):
    assert linear_probe(Watched(), SPLIT, DATA, replace(SHORT, view=view)).top1 == 100


def test_value_features_are_cached_without_augmentation():
    cached, fresh = Watched(), Watched()
    linear_probe(cached, SPLIT, DATA, SHORT)
    linear_probe(fresh, SPLIT, DATA, replace(SHORT, view="crop-flip"))
    assert cached.pictures == 48 + 24
    assert fresh.pictures == 12 * 48 + 24


def test_invariant_encoder_is_untouched():
    encoder = Watched().train()
    encoder.norm.eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    linear_probe(encoder, SPLIT, DATA, replace(SHORT, view="crop-flip"))
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert encoder.training and not encoder.norm.training
    assert encoder.weight.grad is None and encoder.weight.requires_grad


@pytest.mark.parametrize("view", ["none", "resized-crop"])
def test_invariant_the_seed_decides(view):
    probe = replace(SHORT, view=view, epochs=2, milestones=(), lr=0.01)
    torch.manual_seed(1)
    first = linear_probe(Watched(), SPLIT, DATA, probe)
    torch.manual_seed(2)
    assert linear_probe(Watched(), SPLIT, DATA, probe) == first
    assert linear_probe(Watched(), SPLIT, DATA, replace(probe, seed=1)) != first


def test_value_sgd_steps():
    probe = LinearProbe(
        epochs=2, batch_size=4, lr=0.5, momentum=0.5, weight_decay=0.1, milestones=(1,), view="none"
    )
    head, x, y = nn.Linear(3, 2), torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
    weight, velocity = head.weight.detach().clone(), torch.zeros(2, 3)
    bias, bias_velocity = head.bias.detach().clone(), torch.zeros(2)
    fit(head, [(x, y)] * 4, probe, steps_per_epoch=2)
    for lr in (0.5, 0.5, 0.05, 0.05):
        error = ((x @ weight.T + bias).softmax(dim=1) - torch.eye(2)[y]) / 4
        velocity = 0.5 * velocity + error.T @ x + 0.1 * weight
        bias_velocity = 0.5 * bias_velocity + error.sum(dim=0) + 0.1 * bias
        weight, bias = weight - lr * velocity, bias - lr * bias_velocity
    torch.testing.assert_close(head.weight.detach(), weight)
    torch.testing.assert_close(head.bias.detach(), bias)


def test_value_larc_steps():
    """Every parameter by its own norm; the bias starts at 0, and its first step is one of plain SGD."""
    probe = LinearProbe(
        epochs=1, batch_size=4, lr=0.5, momentum=0.5, weight_decay=0.1, milestones=(), view="none", trust=0.02
    )
    head, x, y = linear_head(3, 2), torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
    weights, speeds = [p.detach().clone() for p in head.parameters()], [0.0, 0.0]
    fit(head, [(x, y)] * 3, probe, steps_per_epoch=3)
    for _ in range(3):
        error = ((x @ weights[0].T + weights[1]).softmax(dim=1) - torch.eye(2)[y]) / 4
        for number, slope in enumerate((error.T @ x, error.sum(dim=0))):
            size, steepness = float(weights[number].norm()), float(slope.norm())
            if size > 0:
                slope = (slope + 0.1 * weights[number]) * 0.02 * size / (steepness + 0.1 * size)
            speeds[number] = 0.5 * speeds[number] + slope
            weights[number] = weights[number] - 0.5 * speeds[number]
    for found, expected in zip(head.parameters(), weights, strict=True):
        torch.testing.assert_close(found.detach(), expected)


def test_value_learning_rates():
    rates = [LinearProbe().learning_rate(epoch) for epoch in (0, 59, 60, 79, 80, 99)]
    assert rates == pytest.approx([30, 30, 3, 3, 0.3, 0.3])
    vit = PROTOCOLS["vit"]
    assert [vit.learning_rate(epoch) for epoch in (0, 45, 90)] == pytest.approx([12, 6, 0], abs=1e-9)
    assert vit.learning_rate(30) == pytest.approx(6 * (1 + math.cos(math.pi / 3)))


def test_value_protocols_of_the_paper():
    assert set(PROTOCOLS) == {"imagenet", "stl10", "tiny", "simsiam", "vit", "small"}
    assert PROTOCOLS["imagenet"] == LinearProbe(epochs=100, batch_size=256, lr=30.0, milestones=(60, 80))
    assert (PROTOCOLS["stl10"].lr, PROTOCOLS["tiny"].lr) == (0.1, 0.1)
    vit = PROTOCOLS["vit"]
    assert (vit.epochs, vit.batch_size, vit.lr, vit.schedule) == (90, 1024, 12, "cosine")
    simsiam = PROTOCOLS["simsiam"]
    assert (simsiam.epochs, simsiam.batch_size, simsiam.lr) == (90, 4096, 0.1 * 4096 / 256)
    assert (simsiam.schedule, simsiam.trust, simsiam.min_scale) == ("cosine", 1e-3, 0.08)
    assert all(probe.weight_decay == 0 and probe.momentum == 0.9 for probe in PROTOCOLS.values())
    assert PROTOCOLS["small"].view == "none"


@pytest.mark.parametrize("epochs", [1, 2, 3, 10, 100, 250])
def test_value_other_numbers_of_epochs(epochs):
    probe = LinearProbe().lasting(epochs)
    assert probe.epochs == epochs
    assert len(probe.milestones) == 2 or epochs < 4
    assert LinearProbe().lasting(10).milestones == (6, 8)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"lr": 0.0}, "lr must be positive, got 0.0"),
        ({"lr": math.inf}, "lr must be positive, got inf"),
        ({"factor": -1.0}, "factor must be positive, got -1.0"),
        ({"momentum": 1.0}, r"momentum must lie in \[0, 1\), got 1.0"),
        ({"trust": -1.0}, "trust must not be negative, got -1.0"),
        ({"weight_decay": -1.0}, "weight_decay must not be negative, got -1.0"),
        ({"min_scale": 0.0}, r"min_scale must lie in \(0, 1\], got 0.0"),
        ({"schedule": "cosin"}, r"unknown schedule 'cosin'. Did you mean 'cosine'\?"),
        ({"view": "crop"}, r"unknown view 'crop'. Did you mean 'crop-flip'\?"),
        ({"milestones": (80, 60)}, r"milestones must rise inside \(0, 100\), the epochs; got \(80, 60\)"),
        ({"epochs": 70}, r"milestones must rise inside \(0, 70\)"),
    ],
)
def test_error_values(changes, words, unchecked_shapes):
    with pytest.raises(ValueError, match=words):
        LinearProbe(**changes)


def test_error_too_few_pictures():
    with pytest.raises(ValueError, match="batch_size 64 is larger than the 48 training pictures"):
        linear_probe(Watched(), SPLIT, DATA, replace(SHORT, batch_size=64))


def test_error_weights_that_blow_up():
    steps = [(torch.full((2, 3), 1e30), torch.tensor([0, 1]))] * 2
    with pytest.raises(ArithmeticError, match="not finite: lr 1e\\+20 is too large"):
        fit(nn.Linear(3, 2), steps, LinearProbe(lr=1e20), steps_per_epoch=1)
