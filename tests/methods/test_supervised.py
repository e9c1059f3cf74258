"""Supervised classification: plain, mixed and clean losses, and its heads."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.losses import decoupled_cross_entropy
from samix.methods.supervised import Objective, Supervised, linear_head, part_of, random_crop
from samix.mixups import MixUp
from samix.nn.encoder import Encoder
from samix.nn.zoo import build_encoder

CLASSES = 5
Y = torch.tensor([0, 3, 1, 3])
INDEX = torch.tensor([1, 2, 3, 0])


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(4, 3, 16, 16)


def build(clean_head: bool = False, **objective) -> Supervised:
    method = Supervised(
        build_encoder("small-resnet", width=4),
        linear_head(32, CLASSES),
        CLASSES,
        clean_head=linear_head(32, CLASSES) if clean_head else None,
        objective=Objective(**objective),
    )
    for head in (method.head, method.clean_head):
        if head is not None:
            nn.init.normal_(head.weight)
    return method


def mixed(x: torch.Tensor, lam: float = 0.3):
    return MixUp()(x, Pairing(torch.tensor([lam]), INDEX))


def binary(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(dim=1).mean()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_plain_loss(x, smoothing):
    method = build(smoothing=smoothing)
    losses = method(x, Y)
    expected = F.cross_entropy(method.logits(x), Y, label_smoothing=smoothing)
    torch.testing.assert_close(losses.total, expected)
    assert losses.mixer is None and losses.log is None and losses.lam is None


def mixed_loss(method: Supervised, mix: Mixed, x: torch.Tensor) -> torch.Tensor:
    return method.mixed_loss(method.logits(mix.x), mix, x, Y)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_binary_losses(x, smoothing):
    method = build(smoothing=smoothing, binary=True)
    targets = (1 - smoothing) * F.one_hot(Y, CLASSES) + smoothing / CLASSES
    torch.testing.assert_close(method(x, Y).total, binary(method.logits(x), targets))
    mix = mixed(x)
    targets = mix.soft_labels(Y, CLASSES, smoothing)
    torch.testing.assert_close(mixed_loss(method, mix, x), binary(method.logits(mix.x), targets))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_two_hot_targets(x, smoothing):
    method, mix = build(smoothing=smoothing, binary=True, two_hot=True), mixed(x)
    targets = torch.zeros(len(x), CLASSES)
    for row, (own, other) in enumerate(zip(Y, Y[INDEX], strict=True)):
        targets[row, own] = targets[row, other] = 1
    targets = (1 - smoothing) * targets + smoothing / CLASSES
    torch.testing.assert_close(mixed_loss(method, mix, x), binary(method.logits(mix.x), targets))
    with pytest.raises(ValueError, match="two_hot needs objective.binary"):
        Objective(two_hot=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_value_mixed_loss_without_clean_branch(x, smoothing):
    method, mix = build(clean_head=True, smoothing=smoothing), mixed(x)
    expected = F.cross_entropy(method.logits(mix.x), mix.soft_labels(Y, CLASSES, smoothing))
    torch.testing.assert_close(mixed_loss(method, mix, x), expected)


def test_value_decoupled_mixed_loss(x):
    method, mix = build(decoupled=0.1), mixed(x)
    logits, rows = method.logits(mix.x), mix.soft_labels(Y, CLASSES)
    expected = F.cross_entropy(logits, rows) + 0.1 * decoupled_cross_entropy(logits, rows)
    torch.testing.assert_close(mixed_loss(method, mix, x), expected)
    torch.testing.assert_close(method(x, Y).total, F.cross_entropy(method.logits(x), Y))
    with pytest.raises(ValueError, match=r"objective.decoupled must be 0 with objective.binary, got 0.1"):
        Objective(decoupled=0.1, binary=True)


@pytest.mark.parametrize("clean_head", [True, False])
@pytest.mark.parametrize(("fraction", "count"), [(1.0, 4), (0.5, 2), (0.01, 2)])
def test_value_mixed_loss_with_clean_branch(x, clean_head, fraction, count):
    method, mix = build(clean_head, clean_weight=0.7, clean_fraction=fraction), mixed(x)
    head = method.clean_head if clean_head else method.head
    mix_loss = F.cross_entropy(method.logits(mix.x), mix.soft_labels(Y, CLASSES))
    clean_loss = F.cross_entropy(head(method.encoder(x[:count])), Y[:count])
    torch.testing.assert_close(mixed_loss(method, mix, x), mix_loss + 0.7 * clean_loss)


def test_value_clean_and_mixed_images_have_batch_statistics_of_their_own(x):
    method = build(clean_weight=1.0)
    mixed_loss(method, mixed(x), x)
    assert int(method.encoder.network.bn1.num_batches_tracked) == 2


@pytest.mark.parametrize("clean_head", [True, False])
def test_shape_heads(x, clean_head):
    heads = build(clean_head).heads(x)
    assert list(heads) == (["mix_q", "one_q"] if clean_head else ["mix_q"])
    assert all(logits.shape == (4, CLASSES) for logits in heads.values())


def test_value_the_mixed_head_is_reported_first(x):
    method = build(clean_head=True).eval()
    torch.testing.assert_close(method.heads(x)["mix_q"], method.logits(x))
    torch.testing.assert_close(method.heads(x)["one_q"], method.clean_head(method.encoder(x)))


def test_value_parameter_groups_hold_every_parameter_once():
    method = build(clean_head=True)
    groups = method.parameter_groups()
    assert list(groups) == ["encoder"]
    assert [id(p) for p in groups["encoder"]] == [id(p) for p in method.parameters()]


@pytest.mark.parametrize("clean_weight", [0.0, 1.0])
def test_gradient_reaches_the_clean_head_only_through_the_clean_branch(x, clean_weight):
    method = build(clean_head=True, clean_weight=clean_weight)
    mixed_loss(method, mixed(x), x).backward()
    assert method.head.weight.grad.abs().max() > 0
    assert (method.clean_head.weight.grad is not None) == (clean_weight > 0)
    assert all(p.grad is not None for p in method.encoder.parameters())


def test_value_a_network_that_gives_logits_needs_no_head(x):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES))
    method = Supervised(Encoder(network, "0"), nn.Identity(), CLASSES)
    torch.testing.assert_close(method(x, Y).total, F.cross_entropy(network(x), Y))
    assert method.maps(x).shape == (4, 4, 14, 14)


def test_value_the_clean_branch_sees_a_crop_of_part_of_the_batch(x):
    method, seen = build(clean_head=True, clean_weight=1.0, clean_crop=0.5, clean_fraction=0.5), []
    method.encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    mixed_loss(method, mixed(x), x).backward()
    whole, cropped = seen
    side = x.shape[-1] // 2
    assert whole.shape == x.shape and cropped.shape == (2, 3, side, side)
    windows = x[:2].unfold(2, side, 1).unfold(3, side, 1)  # [2, 3, tops, lefts, side, side]
    assert (windows == cropped[:, :, None, None]).flatten(4).all(dim=4).all(dim=1).all(dim=0).any()


def test_value_random_crop_reaches_every_place_and_draws_nothing_for_the_whole():
    x = torch.arange(20.0).view(1, 1, 4, 5).expand(2, 3, 4, 5)
    torch.manual_seed(0)
    corners = {float(random_crop(x, 0.6)[0, 0, 0, 0]) for _ in range(200)}
    assert corners == {0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 10.0, 11.0, 12.0}
    state = torch.get_rng_state()
    assert random_crop(x, 1.0) is x and torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("binary", [False, True])
def test_error_labels_out_of_range(x, binary):
    with pytest.raises(ValueError, match="label 7 at position 2"):
        build(binary=binary)(x, torch.tensor([0, 1, 7, 2]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clean_weight", -1.0),
        ("clean_fraction", 0.0),
        ("clean_fraction", 1.5),
        ("clean_crop", 0.0),
        ("clean_crop", 1.5),
        ("smoothing", 1.0),
        ("smoothing", -0.1),
        ("decoupled", -0.1),
    ],
)
def test_error_bad_objectives_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=rf"objective\.{field} must .* got {value}"):
        Objective(**{field: value})


@given(batch=st.integers(1, 500), fraction=st.floats(0.001, 1))
def test_invariant_a_part_of_the_batch_holds_a_pair(batch, fraction):
    count = part_of(batch, fraction)
    assert min(batch, 2) <= count <= batch
    assert part_of(batch, 1.0) == batch
    if fraction * batch >= 2:
        assert abs(count - fraction * batch) <= 0.5


def test_value_linear_head_starts_small():
    head = linear_head(512, 100)
    assert 0.009 < float(head.weight.detach().std()) < 0.011 and (head.bias == 0).all()
