"""Encoders by name: the table, and the settings that build one of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from samix.core.checks import check_at_least, check_below_one
from samix.core.words import suggest
from samix.nn.encoder import Encoder
from samix.nn.from_timm import timm_network
from samix.nn.resnet import WideResNet, small_resnet, with_cifar_stem
from samix.nn.vit import moco_vit


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


@dataclass(frozen=True, kw_only=True)
class Network:
    """Which encoder."""

    name: str = "small-resnet"
    """A name of ENCODERS."""
    width: int = 16
    """Channels of the first stage (small-resnet), or a sixth of a token's (small-vit)."""
    drop_path: float = 0.0
    """Stochastic depth, for networks of timm."""

    def __post_init__(self) -> None:
        if self.name not in ENCODERS:
            raise ValueError(f"unknown encoder {suggest(self.name, ENCODERS)}")
        check_at_least(1, self, "encoder", "width")
        check_below_one(self, "encoder", "drop_path")
        if self.drop_path and "drop_path_rate" not in ENCODERS[self.name].takes:
            able = ", ".join(name for name, spec in ENCODERS.items() if "drop_path_rate" in spec.takes)
            raise ValueError(
                f"{self.name} has no stochastic depth: leave encoder.drop_path at 0, or take one of {able}."
            )

    def build(self, size: int) -> Encoder:
        """A fresh encoder for pictures of `size` px."""
        spec = ENCODERS[self.name]
        if size % spec.multiple:
            raise ValueError(
                f"{self.name} takes pictures with a side of {spec.multiple} n pixels, got data.size {size}."
            )
        known = {"width": self.width, "size": size, "drop_path_rate": self.drop_path}
        return build_encoder(self.name, **{name: known[name] for name in spec.takes})
