"""Encoders: the maps the Mixer reads, taken without running what lies behind them."""

import pytest
import torch
from torch import nn

from samix.nn.encoder import Encoder, as_map, find_layer, read_layer
from samix.nn.zoo import ENCODERS, build_encoder

# name: (image side, channels and side of the layer's map, width of the features)
EXPECTED = {
    "small-resnet": (32, 64, 8, 128),
    "small-vit": (32, 96, 8, 96),
    "resnet18-cifar": (32, 256, 8, 512),
    "resnext50-cifar": (32, 1024, 8, 2048),
    "wrn-28-8": (32, 256, 16, 512),
    "resnet18": (224, 256, 14, 512),
    "resnet34": (224, 256, 14, 512),
    "resnet50": (224, 1024, 14, 2048),
    "resnet101": (224, 1024, 14, 2048),
    "resnext50": (224, 1024, 14, 2048),
    "resnext101": (224, 1024, 14, 2048),
    "deit-s": (224, 384, 14, 384),
    "vit-s": (224, 384, 14, 384),
    "vit-s-moco": (224, 384, 14, 384),
    "lite0": (224, 112, 14, 1280),
    "swin-t": (224, 384, 14, 768),
}


def test_value_the_table_is_covered():
    assert EXPECTED.keys() == ENCODERS.keys()


@pytest.mark.parametrize("name", ENCODERS)
def test_shape_of_maps_and_features(name):
    """On the meta device: shapes are computed, nothing is."""
    side, channels, map_side, dim = EXPECTED[name]
    with torch.device("meta"):
        encoder = build_encoder(name)
        x = torch.empty(2, 3, side, side)
    assert encoder.maps(x).shape == (2, channels, map_side, map_side)
    assert encoder(x).shape == (2, dim)


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("small-resnet", 32),
        ("resnet18-cifar", 16),
        ("wrn-28-8", 16),
        ("resnet50", 64),
        ("vit-s", 224),
        ("swin-t", 224),
    ],
)
def test_value_maps_equal_the_output_inside_a_full_pass(name, side):
    encoder, x = build_encoder(name).eval(), torch.randn(1, 3, side, side)
    seen = []
    layer = encoder.network.get_submodule(encoder.layer)
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    with torch.no_grad():
        encoder(x)
        handle.remove()
        maps = encoder.maps(x)
    (output,) = seen
    if name == "vit-s":  # behind the norm that the network puts on its own output
        with torch.no_grad():
            output = encoder.network.norm(output)
        output = output[:, 1:].unflatten(1, maps.shape[-2:])
    if name in ("vit-s", "swin-t"):
        output = output.permute(0, 3, 1, 2)
    torch.testing.assert_close(maps, output)


def test_value_tokens_keep_their_place():
    """Changing one patch of the image changes the map most at that patch."""
    encoder = build_encoder("vit-s").eval()
    x = torch.zeros(1, 3, 224, 224)
    changed = x.clone()
    changed[:, :, 32:48, 160:176] = 3.0  # patch (2, 10)
    with torch.no_grad():
        change = (encoder.maps(changed) - encoder.maps(x)).norm(dim=1)[0]
    assert divmod(int(change.argmax()), 14) == (2, 10)


def run_counter(network: nn.Module, layers: list[str]) -> list[str]:
    runs: list[str] = []
    for name in layers:
        network.get_submodule(name).register_forward_hook(lambda *_, name=name: runs.append(name))
    return runs


def test_value_maps_stop_behind_their_layer():
    encoder = build_encoder("small-resnet", width=4)
    runs = run_counter(encoder.network, ["layer2", "layer3", "layer4", "global_pool"])
    encoder.maps(torch.randn(2, 3, 32, 32))
    assert runs == ["layer2", "layer3"]
    runs.clear()
    encoder(torch.randn(2, 3, 32, 32))
    assert runs == ["layer2", "layer3", "layer4", "global_pool"], "no hook stays behind"


def test_gradient_maps_reach_the_layers_before_and_no_others():
    encoder = build_encoder("small-resnet", width=4)
    x = torch.randn(2, 3, 16, 16, requires_grad=True)
    encoder.maps(x).sum().backward()
    assert x.grad is not None and encoder.network.conv1.weight.grad is not None
    assert all(p.grad is None for p in encoder.network.layer4.parameters())


@pytest.mark.parametrize(("name", "side"), [("small-resnet", 32), ("resnet18-cifar", 16)])
def test_value_probe_finds_the_widths_and_leaves_no_trace(name, side):
    encoder = build_encoder(name)
    before = {key: value.clone() for key, value in encoder.state_dict().items()}
    _, channels, _, dim = EXPECTED[name]
    assert encoder.probe(side) == (channels, dim)
    assert encoder.training and all(torch.equal(before[k], v) for k, v in encoder.state_dict().items())


def test_shape_maps_of_images_that_are_not_square():
    encoder = build_encoder("small-resnet", width=4)
    assert encoder.maps(torch.randn(2, 3, 32, 48)).shape == (2, 16, 8, 12)


def test_value_options_reach_the_builder():
    assert build_encoder("small-resnet", width=4).probe() == (16, 32)


class OwnNetwork(nn.Module):
    """What a user might bring."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.unused = nn.Conv2d(3, 6, 1)
        self.body = nn.Sequential(nn.ReLU(), nn.Conv2d(6, 5, 1))
        self.classifier = nn.Linear(5, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.body(self.stem(x)).mean(dim=(2, 3)))


def test_value_a_network_of_ones_own():
    network = OwnNetwork()
    encoder, x = Encoder(network, "body.0"), torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(encoder.maps(x), network.stem(x).relu())
    assert encoder(x).shape == (2, 7) and encoder.probe(8) == (6, 7)


def test_error_unknown_encoder_has_a_suggestion():
    with pytest.raises(
        ValueError, match=r"unknown encoder 'resnet18-cifra'\. Did you mean 'resnet18-cifar'\?"
    ):
        build_encoder("resnet18-cifra")


def test_error_unknown_layer_has_a_suggestion():
    with pytest.raises(ValueError, match=r"no layer 'boddy'\. Did you mean 'body'\?"):
        Encoder(OwnNetwork(), "boddy")
    with pytest.raises(ValueError, match="no layer ''"):
        find_layer(OwnNetwork(), "")


def test_error_a_layer_without_a_map():
    encoder = Encoder(OwnNetwork(), "classifier")
    with pytest.raises(ValueError, match=r"gives \[2, 7\]\. Name an earlier layer"):
        encoder.maps(torch.randn(2, 3, 8, 8))


def test_error_a_layer_that_is_not_run():
    with pytest.raises(RuntimeError, match="layer 'unused' was not run"):
        read_layer(OwnNetwork(), "unused", torch.randn(2, 3, 8, 8))


def test_value_an_error_inside_the_network_passes_and_leaves_no_hook():
    network = OwnNetwork()
    with pytest.raises(RuntimeError):
        read_layer(network, "body", torch.randn(2, 3, 8, 8, dtype=torch.float64))
    assert not network.body._forward_hooks


def test_error_tokens_that_are_no_square_grid():
    with pytest.raises(ValueError, match=r"gives 17 tokens behind 0 prefix tokens.*prefix_tokens"):
        as_map(torch.randn(2, 17, 8), (16, 16))
    assert as_map(torch.randn(2, 17, 8), (16, 16), prefix_tokens=1).shape == (2, 8, 4, 4)


def test_value_channels_last_maps_are_turned():
    output = torch.randn(2, 4, 5, 8)
    assert torch.equal(as_map(output, (16, 16), channels_last=True), output.permute(0, 3, 1, 2))
    assert as_map(output, (16, 16)) is output


class Answers(nn.Module):
    """A network with a layer to read and an output of one's choice."""

    def __init__(self, answer) -> None:
        super().__init__()
        self.conv, self.answer = nn.Conv2d(3, 4, 1), answer

    def forward(self, x):
        return self.answer(self.conv(x))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda z: {"logits": z.mean(dim=(2, 3))}, r"one row per picture, a tensor \[B, K\]; got dict"),
        (lambda z: z, r"one row per picture, a tensor \[B, K\]; got \[1, 4, 8, 8\]"),
        (lambda z: z.view(1, 3), r"cannot run a picture \[1, 3, 8, 8\].*size="),
    ],
)
def test_error_networks_that_cannot_be_wrapped(answer, words):
    network = Answers(answer).train()
    with pytest.raises(ValueError, match=words):
        Encoder(network, "conv").probe(8)
    assert network.training and network.conv.training


def test_error_maps_whose_channels_come_last_by_mistake():
    network = Answers(lambda z: z.mean(dim=(2, 3)))
    network.conv = nn.Sequential(nn.Conv2d(3, 4, 1), Last())
    network.answer = lambda z: z.mean(dim=(1, 2))
    with pytest.raises(ValueError, match=r"gives \[1, 8, 8, 4\] for a square picture.*channels_last=True"):
        Encoder(network, "conv").probe(8)
    assert Encoder(network, "conv", channels_last=True).probe(8) == (4, 4)


class Last(nn.Module):
    """[B, C, h, w] to [B, h, w, C]."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1)
