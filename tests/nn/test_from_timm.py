"""Networks of timm by name: where a Mixer reads in them, and what pictures they take."""

import subprocess
import sys

import pytest
import torch

from samix.nn.from_timm import largest_stride, timm_stats
from samix.nn.zoo import Network, build_encoder, find_spec

# name: (picture side, layer, channels and side of its map, norm, prefix tokens, channels last)
PLACES = {
    "resnet50": (64, "layer3", 1024, 4, None, 0, False),
    "resnext50_32x4d": (64, "layer3", 1024, 4, None, 0, False),
    "regnety_002": (64, "s3", 152, 4, None, 0, False),
    "tf_efficientnet_lite0": (64, "blocks.4", 112, 4, None, 0, False),
    "mobilenetv3_large_100": (64, "blocks.4", 112, 4, None, 0, False),
    "convnext_tiny": (64, "stages.2", 384, 4, None, 0, False),
    "vit_small_patch16_224": (64, "blocks.5", 384, 4, "norm", 1, False),
    "deit_tiny_distilled_patch16_224": (64, "blocks.5", 192, 4, "norm", 2, False),
    "swin_tiny_patch4_window7_224": (96, "layers.2", 384, 6, None, 0, True),
    "densenet121": (64, "features.denseblock3", 1024, 4, None, 0, False),
}


@pytest.mark.parametrize("name", PLACES)
def test_shape_of_the_map_that_a_mixer_reads(name):
    if name.startswith("regnety") and torch.__version__.startswith("2.5."):
        pytest.skip("torch 2.5 cannot build a RegNet on the meta device")
    side, layer, channels, map_side, norm, prefix, last = PLACES[name]
    with torch.device("meta"):
        encoder = Network(name=f"timm:{name}").build(side)
        x = torch.empty(2, 3, side, side)
    told = (encoder.layer, encoder.norm, encoder.prefix_tokens, encoder.channels_last)
    assert told == (layer, norm, prefix, last)
    assert encoder.maps(x).shape == (2, channels, map_side, map_side)
    assert encoder(x).ndim == 2


@pytest.mark.parametrize(
    "name", ["lite0", "timm:tf_efficientnet_lite0", "small-resnet", "timm:vit_tiny_patch16_224"]
)
def test_value_another_layer_if_one_is_named(name):
    layer = "blocks.2" if name != "small-resnet" else "layer2"
    with torch.device("meta"):
        encoder = Network(name=name, layer=layer).build(64)
        own = Network(name=name).build(64)
    assert encoder.layer == layer != own.layer
    assert (encoder.norm, encoder.prefix_tokens) == (own.norm, own.prefix_tokens)
    assert encoder.maps(torch.empty(1, 3, 64, 64, device="meta")).ndim == 4


def test_error_a_layer_that_is_not_there():
    with pytest.raises(ValueError, match=r"the network has no layer 'layr3'. Did you mean 'layer3'"):
        Network(width=4, layer="layr3").build(16)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("timm:resnet5o", r"timm has no network 'resnet5o'. Did you mean 'resnet50'"),
        ("timm:resnet50.a1_in1000", r"no weights of resnet50 called 'a1_in1000'. Did you mean 'a1_in1k'"),
        ("lite1", r"unknown encoder 'lite1'. Did you mean 'lite0'\?.*timm:NAME"),
    ],
)
def test_error_unknown_names(name, words):
    with pytest.raises(ValueError, match=words):
        Network(name=name)
    with pytest.raises(ValueError, match=words):
        build_encoder(name)


@pytest.mark.parametrize(("name", "stride"), [("lite0", 32), ("timm:resnet18", 32), ("timm:vgg11_bn", 32)])
def test_error_pictures_smaller_than_the_stride(name, stride):
    with torch.device("meta"):
        assert largest_stride(Network(name=name).build(stride).network) == stride
        with pytest.raises(ValueError, match=rf"sees {stride} pixels as one .* of 24 px are too small"):
            Network(name=name).build(24)


def test_value_stochastic_depth_reaches_the_network():
    with torch.device("meta"):
        plain, deep = (Network(name="timm:convnext_atto", drop_path=p).build(32).network for p in (0.0, 0.5))
    drops = [[type(m).__name__ for m in network.modules()].count("DropPath") for network in (plain, deep)]
    assert drops[0] == 0 < drops[1]


def test_error_an_option_that_a_network_does_not_take():
    with pytest.raises(ValueError, match=r"timm's vgg11 does not take these options: .*drop_path_rate"):
        Network(name="timm:vgg11", drop_path=0.1).build(32)


def test_value_networks_of_one_size_say_so():
    assert find_spec("timm:vit_tiny_patch16_224").one_size and not find_spec("timm:resnet18").one_size


def test_value_normalisation_of_the_weights_of_timm():
    assert timm_stats("vit_small_patch16_224") == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert timm_stats("resnet18") == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def test_invariant_timm_is_imported_on_use():
    code = "import sys, samix.nn.zoo as z; z.Network(); sys.exit('timm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
