"""Mixing inside any network: the drawn layer, its hook, the mixed batch, and what cannot be mixed."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Supervised, linear_head
from samix.mixups.alignmix import AlignMix
from samix.mixups.latent import LatentMixup, MixedMaps
from samix.mixups.manifoldmix import ManifoldMix
from samix.mixups.patchup import PatchUp
from samix.nn.zoo import build_encoder

POLICIES = {
    "manifoldmix": ManifoldMix,
    "patchup": PatchUp,
    "patchup-soft": lambda **settings: PatchUp(hard=False, **settings),
    "alignmix": AlignMix,
}


class Tiny(nn.Module):
    """A user's own network, with layers of every kind that can be named."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.act = nn.ReLU()
        self.tokens = nn.Flatten(2)
        self.unused = nn.Identity()
        self.pair = PairOf()
        self.fold = nn.Flatten(0, 1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.act(self.stem(x)) - 0.1)
        first, second = self.pair(self.tokens(x))
        self.fold(x)
        return self.head((first + second).mean(dim=2))


class PairOf(nn.Module):
    """Gives a tuple."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


@dataclass(frozen=True, kw_only=True)
class Zero(LatentMixup):
    """Replaces a layer's output by 0 and weighs the first label by .25: easy to see from outside."""

    def mix_maps(self, maps: Tensor, pairing: Pairing, generator: torch.Generator | None = None) -> MixedMaps:
        return MixedMaps(torch.zeros_like(maps), torch.full_like(pairing.lam, 0.25))


@pytest.fixture(params=POLICIES.values(), ids=POLICIES.keys())
def make(request):
    return request.param


def images(batch: int, size: tuple[int, int] = (12, 20)) -> Tensor:
    return torch.rand(batch, 3, *size, generator=torch.Generator().manual_seed(3))


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def lams(batch: int, per_sample: bool) -> Tensor:
    return torch.linspace(0.1, 0.9, batch) if per_sample else torch.tensor([0.4])


@cache
def encoder(dtype: torch.dtype = torch.float32) -> nn.Module:
    """A network that tests share, because none may change it."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build_encoder("small-resnet", width=4).to(dtype).eval()


def hooks_of(network: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in network.modules())


def drawing(make, layer: str, **settings) -> LatentMixup:
    """The policy with one layer only; AlignMix without its coin for the images."""
    if make is AlignMix and layer != "input":
        settings["input_share"] = 0.0
    return make(layers=(layer,), **settings)


def test_value_the_rest_of_the_network_runs_on_the_mixed_output():
    network, x = Tiny(), images(3)
    outputs, mixed = Zero(layers=("stem",)).run(network, x, Pairing(torch.tensor([0.6]), ring(3)))
    torch.testing.assert_close(outputs, network.head.bias.expand(3, 5))
    assert mixed.pairing.lam.tolist() == [0.25] and mixed.mask.unique().tolist() == [0.25]
    assert mixed.x is x and torch.equal(mixed.pairing.index, ring(3))


def test_value_the_layer_below_a_wrapper_is_found():
    network = Tiny()
    outputs, _ = Zero(layers=("stem",)).run(
        nn.Sequential(nn.Sequential(network)), images(2), Pairing(torch.tensor([0.6]), ring(2))
    )
    torch.testing.assert_close(outputs, network.head.bias.expand(2, 5))


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("size", [(8, 8), (12, 20)])
@pytest.mark.parametrize("layer", ["input", "layer1", "layer4"])
def test_shape(make, layer, batch, size, per_sample):
    x = images(batch, size)
    outputs, mixed = drawing(make, layer).run(encoder(), x, Pairing(lams(batch, per_sample), ring(batch)))
    assert outputs.shape == (batch, 32) and outputs.isfinite().all()
    count = batch if per_sample else 1
    assert mixed.mask.shape == (count, 1, *size) and mixed.pairing.lam.shape == (count,)
    assert (mixed.x is x) == (layer != "input")
    torch.testing.assert_close(mixed.mask.mean(dim=(1, 2, 3)), mixed.pairing.lam)
    if layer != "input":
        assert torch.equal(mixed.mask[:, 0, 0, 0], mixed.pairing.lam)
        assert (mixed.mask == mixed.mask[:, :, :1, :1]).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("layer", ["input", "layer2"])
def test_shape_of_other_precisions(make, layer, dtype):
    x = images(3).to(dtype)
    outputs, mixed = drawing(make, layer).run(encoder(dtype), x, Pairing(lams(3, True), ring(3)))
    assert outputs.dtype == mixed.x.dtype == mixed.mask.dtype == dtype
    assert mixed.pairing.lam.dtype == torch.float32


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("layer", ["input", "layer1", "layer4"])
def test_invariant_lam_one_leaves_the_pass_untouched(make, layer, per_sample):
    network, x = encoder(), images(4)
    plain = network(x)
    for seed in range(4):
        lam = torch.ones(4 if per_sample else 1)
        draw = torch.Generator().manual_seed(seed)
        outputs, mixed = drawing(make, layer).run(network, x, Pairing(lam, ring(4)), None, draw)
        assert torch.equal(outputs, plain) and torch.equal(mixed.x, x)
        assert (mixed.pairing.lam == 1).all()


@pytest.mark.parametrize("layer", ["input", "layer1"])
def test_invariant_lam_one_leaves_single_images_untouched(make, layer):
    network, x = encoder(), images(4, (16, 16))
    pairing = Pairing(torch.tensor([1.0, 0.3, 1.0, 0.1]), ring(4))
    draw = torch.Generator().manual_seed(1)  # PatchUp's boxes are not empty
    outputs, mixed = drawing(make, layer).run(network, x, pairing, None, draw)
    same = (outputs == network(x)).all(dim=1)
    assert same.tolist() == [True, False, True, False]
    assert (mixed.pairing.lam == 1).tolist() == [True, False, True, False]


def test_invariant_a_seed_fixes_the_result(make):
    network, x, policy = encoder(), images(5), make()

    def run(seed: int) -> Tensor:
        draw = torch.Generator().manual_seed(seed)
        return policy.run(network, x, policy.draw(5, draw), None, draw)[0]

    before = torch.get_rng_state()
    assert all(torch.equal(run(seed), run(seed)) for seed in range(3))
    assert len({float(run(seed).detach().sum()) for seed in range(3)}) > 1
    assert torch.equal(before, torch.get_rng_state()), "the generator was passed but not used"


@pytest.mark.parametrize("layer", ["input", "layer1", "layer4"])
def test_invariant_nothing_is_changed_in_place(make, layer):
    network, x, pairing = encoder(), images(5), Pairing(lams(5, True), ring(5))
    copies = x.clone(), pairing.lam.clone()
    drawing(make, layer).run(network, x, pairing)
    assert x._version == 0 and pairing.lam._version == 0 and pairing.index._version == 0
    assert torch.equal(x, copies[0]) and torch.equal(pairing.lam, copies[1])


def test_invariant_the_network_stays_as_it_was(make):
    """Inference behind a mixed pass is plain."""
    network, x = encoder(), images(3)
    plain = network(x)
    outputs, _ = drawing(make, "layer1").run(network, x, Pairing(lams(3, False), ring(3)))
    assert not torch.allclose(outputs, plain)
    assert torch.equal(network(x), plain) and hooks_of(network) == 0


def test_invariant_hooks_are_removed_when_the_pass_fails(monkeypatch):
    network, x = Tiny(), images(3)
    plain = network(x)

    def fail(x: Tensor) -> Tensor:
        raise FloatingPointError("behind the mixed layer")

    with monkeypatch.context() as patch:
        patch.setattr(network.tokens, "forward", fail)
        with pytest.raises(FloatingPointError):
            Zero(layers=("stem",)).run(network, x, Pairing(torch.tensor([0.6]), ring(3)))
    assert hooks_of(network) == 0 and torch.equal(network(x), plain)


@pytest.mark.parametrize("seed", range(4))
def test_gradient_inside_a_method_reaches_every_weight(make, seed):
    method = Supervised(build_encoder("small-resnet", width=4), linear_head(32, 5), 5)
    torch.manual_seed(seed)
    losses = Mixing(method, make())(images(4, (16, 16)), torch.tensor([0, 3, 1, 2]))
    losses.total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in method.parameters())


def test_value_draw_layer_is_uniform():
    policy, draw = ManifoldMix(), torch.Generator().manual_seed(5)
    before = torch.get_rng_state()
    drawn = [policy.draw_layer(draw) for _ in range(3000)]
    for layer in ("input", "layer1", "layer2"):
        assert drawn.count(layer) == pytest.approx(1000, abs=100)
    assert torch.equal(before, torch.get_rng_state())


def test_error_without_a_network(make):
    with pytest.raises(ValueError, match=r"policy\.run\(network.*samix\.Mix\(\.\.\.\)\.forward\(model, x"):
        make()(images(2), Pairing(torch.tensor([0.5]), ring(2)))


def test_error_a_policy_must_define_mix_maps():
    with pytest.raises(TypeError, match="LatentMixup must define mix_maps"):
        LatentMixup(layers=("stem",)).run(Tiny(), images(2), Pairing(torch.tensor([0.5]), ring(2)))


@pytest.mark.parametrize(
    ("layer", "error", "message"),
    [
        ("act", RuntimeError, "layer 'act' is run more than once in a forward pass"),
        ("unused", RuntimeError, "layer 'unused' was not run by the network's forward pass"),
        ("pair", ValueError, "layer 'pair' gives a tuple, not a tensor"),
        ("fold", ValueError, r"layer 'fold' gives \[12, 12, 20\] for a batch of 3"),
        ("stm", ValueError, "the network has no layer 'stm'. Did you mean 'stem'"),
    ],
)
def test_error_layers_that_cannot_be_mixed(unchecked_shapes, layer, error, message):
    network = Tiny()
    with pytest.raises(error, match=message):
        Zero(layers=(layer,)).run(network, images(3), Pairing(torch.tensor([0.5]), ring(3)))
    assert hooks_of(network) == 0


def test_error_a_wrong_name_shows_before_it_is_drawn(monkeypatch):
    monkeypatch.setattr(Zero, "draw_layer", lambda self, generator: "stem")
    with pytest.raises(ValueError, match="the network has no layer 'layer9'"):
        Zero(layers=("stem", "layer9")).run(Tiny(), images(2), Pairing(torch.tensor([0.5]), ring(2)))


@pytest.mark.parametrize("policy", [PatchUp, AlignMix])
def test_error_tokens_are_not_a_map(policy):
    mixing = drawing(policy, "tokens")
    message = rf"{policy.__name__} needs a layer with a map .*gives \[3, 4, 240\].*'layer4' of a ResNet"
    with pytest.raises(ValueError, match=message):
        mixing.run(Tiny(), images(3), Pairing(torch.tensor([0.5]), ring(3)))


def test_error_layers(make):
    with pytest.raises(ValueError, match=r"mixup.layers must name at least one layer, got \(\)"):
        make(layers=())


def test_error_layers_given_as_one_word(unchecked_shapes):
    with pytest.raises(
        ValueError, match=r"mixup.layers must be a tuple of names \(add a comma\), got 'layer4'"
    ):
        ManifoldMix(layers="layer4")


@pytest.mark.parametrize("alpha", [0.0, -0.5])
def test_error_alpha_must_be_positive(make, alpha):
    with pytest.raises(ValueError, match=rf"mixup.alpha must be positive, got {alpha}"):
        make(alpha=alpha)
