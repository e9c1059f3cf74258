"""ClusterMixing: hints from pseudo labels, Grad-CAM against a loop, and a head that learns by itself."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samix.contract import Losses
from samix.core.pairing import Pairing
from samix.core.shapes import Stats
from samix.learned.cluster_mixing import ClusterMixing, grad_cam, last_stage
from samix.learned.clusters import follow_keys
from samix.learned.pseudo import Clusters
from samix.methods.around.self_mixing import SelfMixing
from samix.methods.ssl.base import Terms, views_of
from samix.mixups import CoMixup, CutMix, Hints, Policy, PuzzleMix, SnapMix, SuperMix
from samix.mixups.interintra import InterIntra
from samix.nn.encoder import Encoder, read_layer
from samix.nn.zoo import build_encoder

PICTURES = 12
POLICIES = [CutMix(), InterIntra(), PuzzleMix(), SuperMix(iterations=2), CoMixup(), SnapMix()]


def build(selfsup, name: str, policy: Policy, terms: Terms | None = None, **changes) -> ClusterMixing:
    """A model whose clusters are known and whose head is far from zero."""
    method = selfsup(name, **changes)
    clusters = Clusters(count=3, min_size=1)
    model = ClusterMixing(method, policy, clusters, terms, dim=8, pictures=PICTURES)
    features = torch.randn(PICTURES, 8, generator=torch.Generator().manual_seed(2))
    model.pseudo.begin(features, torch.zeros(PICTURES, dtype=torch.long), 0)
    nn.init.normal_(model.pseudo.head.weight, std=1.0, generator=torch.Generator().manual_seed(3))
    return model


def keys_of(model: ClusterMixing, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor | None:
    """The keys that the method makes itself, from a copy of it."""
    return deepcopy(model.method).observe(*views_of(x, index)).keys


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_value_every_method_and_policy_learns(selfsup, method_name, two_views, policy, gradients):
    model = build(selfsup, method_name, policy)
    losses = model(*two_views(6), 0.5)
    assert losses.total.isfinite() and losses.mixer is None
    found = gradients(losses.encoder, model)
    assert all(gradient is not None for gradient in found.values())
    assert not any("momentum" in name for name in found)
    assert int(model.pseudo.memory.steps) == 1


class Told(SelfMixing):
    """`SelfMixing` that is told the labels."""

    def hints(self, view, target, pairing, seen, index) -> Hints:
        return Hints(labels=self.known)


@pytest.mark.parametrize("terms", [Terms(), Terms(base=0.0, views=1)], ids=["both", "mixed"])
@pytest.mark.parametrize("name", ["moco-v2", "moco-v3", "simsiam"])
def test_value_the_loss_is_that_of_the_labels_plus_the_heads(selfsup, two_views, name, terms):
    model, (x, index) = build(selfsup, name, InterIntra(), terms), two_views(6)
    told = Told(deepcopy(model.method), model.policy, terms)
    told.known = y = model.pseudo.labels(index).clone()
    head, weight = deepcopy(model.pseudo.head), model.pseudo.memory.class_weights().clone()
    torch.manual_seed(4)
    expected = told(x, index, 0.5).encoder
    if (keys := keys_of(model, x, index)) is None:
        keys = told.method.eval().branch(x[6:])  # its batch norm has seen what that of the model will have

    torch.manual_seed(4)
    found = model(x, index, 0.5).encoder
    log_p = head(keys).log_softmax(dim=1)
    parts = [float(weight[y[i]] * log_p[i, y[i]].detach()) for i in range(6)]
    loss = -sum(parts) / float(weight[y].sum())
    torch.testing.assert_close(found, expected + loss, rtol=1e-4, atol=1e-5)


def test_value_hints_hold_the_pseudo_labels_from_before_the_step(selfsup, two_views):
    model, (x, index) = build(selfsup, "moco-v2", InterIntra()), two_views(6)
    asked = []

    class Spy(InterIntra):
        def mask(self, x, pairing, hints, generator):
            asked.append(hints)
            return super().mask(x, pairing, hints, generator)

    model.policy = Spy()
    before = model.pseudo.labels(index).clone()
    model(x, index)
    assert len(asked) == 1 and torch.equal(asked[0].labels, before)


def test_value_the_memory_follows_the_clean_keys_after_the_losses(selfsup, two_views):
    model, (x, _) = build(selfsup, "moco-v2", CutMix()), two_views(6)
    index = torch.tensor([3, 7, 1, 0, 11, 5])
    keys, rows = keys_of(model, x, index), model.pseudo.memory.features[index].clone()
    others = [i for i in range(PICTURES) if i not in index.tolist()]
    before = model.pseudo.memory.features[others].clone()
    model(x, index)
    torch.testing.assert_close(model.pseudo.memory.features[index], follow_keys(rows, keys, 0.5))
    assert torch.equal(model.pseudo.memory.features[others], before)


@pytest.mark.parametrize("name", ["moco-v2", "simclr"])
def test_gradient_the_heads_loss_reaches_the_head_alone(selfsup, two_views, gradients, name):
    model, (x, index) = build(selfsup, name, CutMix()), two_views(6)
    found = gradients(model(x, index).encoder, model.pseudo)
    assert all(gradient is not None and gradient.abs().max() > 0 for gradient in found.values())
    y, keys = model.pseudo.labels(index), model.clustered_branch(x[6:])
    found = gradients(model.head_loss(keys, y), model)
    assert {n for n, g in found.items() if g is not None} == {"pseudo.head.weight", "pseudo.head.bias"}


@pytest.mark.parametrize("name", ["simclr", "simsiam", "swav"])
def test_value_keys_without_a_momentum_branch_leave_batch_norm_alone(selfsup, two_views, name):
    model, (x, index) = build(selfsup, name, CutMix()), two_views(6)
    assert model.clustered_branch is model.method.branch
    seen = model.method.observe(x[:6], x[6:])
    before = {key: value.clone() for key, value in model.method.state_dict().items()}
    losses = model.finish(Losses(torch.zeros(())), seen, x[6:], index)
    losses.encoder.backward()
    assert all(p.grad is None for p in model.method.parameters()) and model.method.branch.training
    assert all(torch.equal(before[key], value) for key, value in model.method.state_dict().items())


def residual() -> Encoder:
    """A small ResNet of which every layer matters: timm starts the residual branches at 0."""
    encoder = build_encoder("small-resnet", width=4)
    for module in encoder.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
    return encoder


def loop_cam(model: ClusterMixing, image: torch.Tensor, label: int) -> torch.Tensor:
    """Grad-CAM of one image [1, 3, H, W], channel by channel, by numbers that move one map at a time."""
    branch = deepcopy(model.clustered_branch).eval().double()
    head = deepcopy(model.pseudo.head).double()
    maps = read_layer(branch.encoder.network, "layer4", image.double()).detach()  # [1, C, h, w]

    def evidence(maps: torch.Tensor) -> float:
        logits = head(branch.projector(maps.mean(dim=(2, 3))))
        return float(logits.log_softmax(dim=1)[0, label].detach())

    cam, step, places = torch.zeros(maps.shape[2:]), 1e-5, maps.shape[2] * maps.shape[3]
    for channel in range(maps.shape[1]):
        moved = [maps.clone(), maps.clone()]
        moved[0][:, channel] += step
        moved[1][:, channel] -= step
        weight = (evidence(moved[0]) - evidence(moved[1])) / (2 * step) / places
        cam += weight * maps[0, channel].float()
    cam = cam.clamp(min=0)
    return F.interpolate(cam[None, None], size=image.shape[-2:], mode="bilinear", align_corners=False)[0, 0]


@pytest.mark.parametrize("name", ["moco-v2", "simclr"])
def test_value_grad_cam_against_a_loop(selfsup, two_views, name):
    model, (x, _) = build(selfsup, name, PuzzleMix(), encoder=residual()), two_views(3)
    y = torch.tensor([0, 2, 1, 1, 0, 2])
    found = grad_cam(model.classifier, x, y)
    assert found.shape == (6, 16, 16) and float(found.max()) > 0
    for i in range(6):
        torch.testing.assert_close(found[i], loop_cam(model, x[i : i + 1], int(y[i])), rtol=1e-3, atol=1e-5)


def test_value_grad_cam_shows_what_speaks_for_the_label(selfsup, two_views):
    """Another label has another map; the momentum branch is looked at, not the online one."""
    model, (x, _) = build(selfsup, "moco-v2", PuzzleMix()), two_views(3)
    first, second = (grad_cam(model.classifier, x, torch.full((6,), label)) for label in (0, 1))
    assert not torch.allclose(first, second)
    with torch.no_grad():
        for parameter in model.method.branch.parameters():
            parameter.zero_()
    assert torch.equal(grad_cam(model.classifier, x, torch.zeros(6, dtype=torch.long)), first)


@pytest.mark.parametrize("name", ["moco-v2", "simclr"])
def test_gradient_grad_cam_leaves_nothing_behind(selfsup, two_views, name):
    model, (x, _) = build(selfsup, name, PuzzleMix()), two_views(3)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    learning = [p.requires_grad for p in model.parameters()]
    with torch.no_grad():
        saliency = grad_cam(model.classifier, x, torch.zeros(6, dtype=torch.long))
    assert not saliency.requires_grad and all(p.grad is None for p in model.parameters())
    assert [p.requires_grad for p in model.parameters()] == learning
    assert all(module.training for module in model.modules())
    assert all(torch.equal(state[key], value) for key, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_value_puzzlemix_gets_grad_cam_of_the_pseudo_labels(selfsup, two_views):
    model, (x, index) = build(selfsup, "moco-v2", PuzzleMix()), two_views(6)
    pairing, seen = model.draw(6, x.device), model.method.observe(*views_of(x, index))
    hints = model.hints(x[:6], seen.targets[0], pairing, seen, index)
    expected = grad_cam(model.classifier, x[:6], model.pseudo.labels(index))
    torch.testing.assert_close(hints.saliency, expected)
    assert torch.equal(hints.pixels, x[:6]) and hints.teacher is None and hints.labels is None


def test_value_the_teacher_is_the_cluster_head_on_the_momentum_branch(selfsup, two_views):
    model, (x, index) = build(selfsup, "moco-v2", SuperMix()), two_views(6)
    pairing, seen = model.draw(6, x.device), model.method.observe(*views_of(x, index))
    images = x[:6].clone().requires_grad_()
    logits = model.hints(images, seen.targets[0], pairing, seen, index).teacher(images)
    logits.sum().backward()
    assert images.grad.abs().max() > 0 and all(p.grad is None for p in model.parameters())
    model.eval()
    torch.testing.assert_close(logits, model.pseudo.head(model.method.momentum(x[:6])))


class Stages(nn.Module):
    """Stages by name, as many as a WRN has."""

    def __init__(self) -> None:
        super().__init__()
        for number in (1, 2, 3):
            self.add_module(f"layer{number}", nn.Sequential(nn.Identity()))
        self.layer_norm = nn.Identity()


@pytest.mark.parametrize(
    "encoder, stage",
    [
        (lambda: build_encoder("small-resnet", width=4), "layer4"),
        (lambda: build_encoder("small-vit", width=2, size=16), "blocks.2"),
        (lambda: Encoder(Stages(), "layer2"), "layer3"),
        (lambda: Encoder(Stages(), "layer_norm"), "layer_norm"),
        (lambda: Encoder(nn.Sequential(nn.Identity(), nn.Identity()), "0"), "0"),
    ],
)
def test_value_the_last_stage(encoder, stage):
    assert last_stage(encoder()) == stage


def test_value_grad_cam_of_a_transformer(selfsup, two_views):
    model = build(selfsup, "moco-v2", PuzzleMix(), encoder=build_encoder("small-vit", width=2, size=16))
    saliency = grad_cam(model.classifier, two_views(3)[0], torch.tensor([0, 1, 2, 0, 1, 2]))
    assert saliency.shape == (6, 16, 16) and float(saliency.max()) > 0


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_value_a_picture(selfsup, policy):
    model, x, index = build(selfsup, "moco-v2", policy), torch.rand(6, 3, 16, 16), torch.arange(6).roll(1)
    mixed = model.picture(x, index, Pairing(torch.tensor([0.5]), index))
    assert mixed.x.shape == x.shape and not torch.equal(mixed.x, x) and not mixed.x.requires_grad


def test_value_pixels_are_un_normalised(selfsup):
    stats, method = Stats((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)), selfsup("moco-v2")
    clusters = Clusters(count=3, min_size=1)
    model = ClusterMixing(method, PuzzleMix(), clusters, stats=stats, dim=8, pictures=PICTURES)
    pairing = Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    pixels = model.supply(torch.zeros(2, 3, 16, 16), torch.tensor([0, 1]), pairing).pixels
    torch.testing.assert_close(pixels, torch.full((2, 3, 16, 16), 0.5))


def test_value_parameter_groups_hold_every_trained_parameter_once(selfsup, method_name):
    model = build(selfsup, method_name, CutMix())
    groups = model.parameter_groups()
    listed = [id(p) for group in groups.values() for p in group]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert {id(p) for p in model.pseudo.head.parameters()} == {id(p) for p in groups["head"]}


def test_error_clusters_that_nobody_began(selfsup, two_views):
    model = ClusterMixing(selfsup("moco-v2"), CutMix(), Clusters(count=3, min_size=1), dim=8, pictures=12)
    with pytest.raises(RuntimeError, match="the cluster memory has no labels yet"):
        model(*two_views())
