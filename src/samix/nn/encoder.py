"""Encoders: one door to every network, and the map of its layer l that the Mixer reads.

The pass stops right behind the named layer, so the Mixer's features never pay for the stages above it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from samix.errors import suggest
from samix.hooks import find_layer, read_input, read_layer
from samix.nn.from_timm import timm_network
from samix.nn.resnet import WideResNet, small_resnet, with_cifar_stem
from samix.nn.vit import moco_vit
from samix.typing import Features, Images, Maps


def as_map(output: Any, *, channels_last: bool = False, prefix_tokens: int = 0) -> Maps:
    """A layer's output as [B, C, h, w]: from [B, h, w, C], or from tokens [B, prefix + h w, C]."""
    if not isinstance(output, Tensor):
        raise ValueError(
            f"the Mixer needs a layer that gives one tensor; this one gives a {type(output).__name__}. "
            "Name a layer inside it."
        )
    if output.ndim == 3:
        tokens = output[:, prefix_tokens:]
        side = int(tokens.shape[1] ** 0.5)
        if side * side != tokens.shape[1]:
            raise ValueError(
                f"the layer gives {tokens.shape[1]} tokens behind {prefix_tokens} prefix tokens, which is "
                "not a square grid; name a layer with a map, or set prefix_tokens."
            )
        return tokens.transpose(1, 2).unflatten(2, (side, side))
    if output.ndim != 4:
        raise ValueError(
            f"the Mixer needs a layer with a spatial map [B, C, h, w] or tokens [B, n, C]; "
            f"this one gives {list(output.shape)}. Name an earlier layer."
        )
    return output.permute(0, 3, 1, 2) if channels_last else output


class Encoder(nn.Module):
    """A network x -> [B, dim], and the name of the layer whose map the Mixer reads.

    `norm` names the layer that normalises the network's own output, for networks whose tokens grow from
    block to block without it. `head` names the last layer of a classifier: the encoder then gives what that
    layer is given.
    """

    def __init__(
        self,
        network: nn.Module,
        layer: str,
        *,
        channels_last: bool = False,
        prefix_tokens: int = 0,
        norm: str | None = None,
        head: str | None = None,
    ) -> None:
        super().__init__()
        for name in (layer, norm, head):
            if name is not None:
                find_layer(network, name)
        self.network, self.layer, self.norm, self.head = network, layer, norm, head
        self.channels_last, self.prefix_tokens = channels_last, prefix_tokens

    def forward(self, x: Images) -> Features:
        return self.output(x)

    def output(self, x: Images) -> Any:
        """What the network gives, or gives to its head; the probe tells whether these are features."""
        return self.network(x) if self.head is None else read_input(self.network, self.head, x)

    def maps(self, x: Images) -> Maps:
        """The layer's map [B, C, h, w], without running what lies behind it."""
        output = read_layer(self.network, self.layer, x)
        if self.norm is not None:
            output = find_layer(self.network, self.norm)(output)
        return as_map(output, channels_last=self.channels_last, prefix_tokens=self.prefix_tokens)

    def black(self, size: int) -> Images:
        """One black picture where, and of the type, the network's weights are."""
        return torch.zeros(1, 3, size, size).to(next(self.network.parameters()))

    @torch.no_grad()
    def probe(self, size: int = 32) -> tuple[int, int]:
        """(channels of the map, width of the output), found by running one black image."""
        modes = {module: module.training for module in self.modules()}
        x = self.black(size)
        self.eval()
        try:
            maps, output = self.maps(x), self.output(x)
        except (RuntimeError, AssertionError, IndexError) as error:
            raise ValueError(
                f"the network cannot run a picture {list(x.shape)}: {str(error).splitlines()[0]} "
                "Networks made for another size need size=."
            ) from error
        finally:
            for module, training in modes.items():
                module.training = training
        if not isinstance(output, Tensor) or output.ndim != 2:
            shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            what = "the network must give" if self.head is None else f"its head {self.head!r} must be given"
            raise ValueError(f"{what} one row per picture, a tensor [B, K]; got {shape}.")
        if maps.shape[2] != maps.shape[3]:
            raise ValueError(
                f"layer {self.layer!r} gives {list(maps.shape)} for a square picture: "
                "if its maps are [B, h, w, C], pass channels_last=True."
            )
        return maps.shape[1], output.shape[1]


@dataclass(frozen=True)
class EncoderSpec:
    """How to build one encoder of the table and where its Mixer reads."""

    build: Callable[..., nn.Module]
    layer: str = "layer3"
    channels_last: bool = False
    prefix_tokens: int = 0
    norm: str | None = None
    takes: tuple[str, ...] = ()
    """Options of the builder: width, size (of the pictures), drop_path_rate."""
    multiple: int = 1
    """The side of a picture must be a multiple of it."""

    @property
    def one_size(self) -> bool:
        """Whether a network takes pictures of the size alone that it was built for."""
        return "size" in self.takes


def _cifar(name: str) -> EncoderSpec:
    def build(**options: Any) -> nn.Module:
        return with_cifar_stem(timm_network(name, **options))

    return EncoderSpec(build, takes=("drop_path_rate",))


def _resnet(name: str) -> EncoderSpec:
    return EncoderSpec(partial(timm_network, name), takes=("drop_path_rate",))


def _transformer(name: str, **spec: Any) -> EncoderSpec:
    def build(size: int = 224, **options: Any) -> nn.Module:
        return timm_network(name, img_size=size, **options)

    return EncoderSpec(build, takes=("size", "drop_path_rate"), **spec)


def _small_vit(width: int = 16, size: int = 32) -> nn.Module:
    """Patches of 4 px, four blocks, 6 * width channels: the transformer for CPUs."""
    return timm_network(
        "vit_tiny_patch16_224", img_size=size, patch_size=4, embed_dim=6 * width, depth=4, num_heads=3
    )


_TOKENS: dict[str, Any] = {"layer": "blocks.5", "prefix_tokens": 1, "norm": "norm", "multiple": 16}

ENCODERS: dict[str, EncoderSpec] = {
    "small-resnet": EncoderSpec(lambda width=16: small_resnet(width), takes=("width",)),
    "small-vit": EncoderSpec(
        _small_vit, layer="blocks.2", prefix_tokens=1, norm="norm", takes=("width", "size"), multiple=4
    ),
    "resnet18-cifar": _cifar("resnet18"),
    "resnext50-cifar": _cifar("resnext50_32x4d"),
    "wrn-28-8": EncoderSpec(lambda: WideResNet(28, 8), layer="layer2"),
    "resnet18": _resnet("resnet18"),
    "resnet34": _resnet("resnet34"),
    "resnet50": _resnet("resnet50"),
    "resnet101": _resnet("resnet101"),
    "resnext50": _resnet("resnext50_32x4d"),
    "resnext101": _resnet("resnext101_32x4d"),
    "deit-s": _transformer("deit_small_patch16_224", **_TOKENS),
    "vit-s": _transformer("vit_small_patch16_224", **_TOKENS),
    "vit-s-moco": EncoderSpec(moco_vit, takes=("size",), **_TOKENS),
    "swin-t": _transformer("swin_tiny_patch4_window7_224", layer="layers.2", channels_last=True, multiple=32),
}


def build_encoder(name: str, **options: Any) -> Encoder:
    """The encoder of that name in `ENCODERS`; options go to its builder (`EncoderSpec.takes`)."""
    if name not in ENCODERS:
        raise ValueError(f"unknown encoder {suggest(name, ENCODERS)}")
    spec = ENCODERS[name]
    return Encoder(
        spec.build(**options),
        spec.layer,
        channels_last=spec.channels_last,
        prefix_tokens=spec.prefix_tokens,
        norm=spec.norm,
    )
