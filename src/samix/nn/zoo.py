"""Encoders by name: the table, and the settings that build one of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from samix.core.checks import check_at_least, check_below_one, check_not_negative
from samix.core.words import suggest
from samix.nn.encoder import Encoder
from samix.nn.from_timm import (
    PREFIX,
    Place,
    check_timm_name,
    find_place,
    largest_stride,
    one_size_only,
    timm_network,
)
from samix.nn.resnet import WideResNet, small_resnet, with_cifar_stem
from samix.nn.stages import freeze_stages
from samix.nn.vit import moco_vit


@dataclass(frozen=True)
class EncoderSpec:
    """How to build one encoder of the table and where its Mixer reads."""

    build: Callable[..., nn.Module]
    layer: str | None = "layer3"
    """None: `find_place` asks the network."""
    channels_last: bool = False
    prefix_tokens: int = 0
    norm: str | None = None
    takes: tuple[str, ...] = ()
    """Options of the builder: width, size (of the pictures), drop_path_rate."""
    multiple: int = 1
    """The side of a picture must be a multiple of it."""
    smallest: int | None = 1
    """The smallest side of a picture; None: the network's stride."""
    timm: str | None = None
    """The network's name in timm where it is just that network, so that weights made for it fit."""

    @property
    def one_size(self) -> bool:
        """Whether a network takes pictures of the size alone that it was built for."""
        return "size" in self.takes


def _cifar(name: str) -> EncoderSpec:
    def build(**options: Any) -> nn.Module:
        return with_cifar_stem(timm_network(name, **options))

    return EncoderSpec(build, takes=("drop_path_rate",))


def _resnet(name: str) -> EncoderSpec:
    return EncoderSpec(partial(timm_network, name), takes=("drop_path_rate",), timm=name)


def _transformer(name: str, **spec: Any) -> EncoderSpec:
    def build(size: int = 224, **options: Any) -> nn.Module:
        return timm_network(name, img_size=size, **options)

    return EncoderSpec(build, takes=("size", "drop_path_rate"), timm=name, **spec)


def _from_timm(name: str) -> EncoderSpec:
    """Any network of timm."""
    one_size = one_size_only(name)

    def build(size: int = 224, drop_path_rate: float = 0.0, **options: Any) -> nn.Module:
        if one_size:
            options["img_size"] = size
        if drop_path_rate:
            options["drop_path_rate"] = drop_path_rate
        try:
            return timm_network(name, **options)
        except TypeError as error:
            raise ValueError(f"timm's {name} does not take these options: {error}.") from error

    takes = ("size", "drop_path_rate") if one_size else ("drop_path_rate",)
    return EncoderSpec(build, layer=None, takes=takes, smallest=None, timm=name)


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
    "lite0": EncoderSpec(
        partial(timm_network, "tf_efficientnet_lite0"),
        layer="blocks.4",
        takes=("drop_path_rate",),
        smallest=None,
        timm="tf_efficientnet_lite0",
    ),
    "swin-t": _transformer("swin_tiny_patch4_window7_224", layer="layers.2", channels_last=True, multiple=32),
}


def find_spec(name: str) -> EncoderSpec:
    """The row of `ENCODERS`, or a network of timm by the name 'timm:NAME'."""
    if name.startswith(PREFIX):
        check_timm_name(name.removeprefix(PREFIX))
        return _from_timm(name.removeprefix(PREFIX))
    if name not in ENCODERS:
        raise ValueError(f"unknown encoder {suggest(name, ENCODERS)} Or any network of timm: {PREFIX}NAME.")
    return ENCODERS[name]


def build_encoder(name: str, *, layer: str | None = None, **options: Any) -> Encoder:
    """The encoder of that name in `ENCODERS`, or of timm ('timm:resnet50').

    `layer` is the one whose map a Mixer reads, None: the table's; options go to the builder
    (`EncoderSpec.takes`).
    """
    spec = find_spec(name)
    network = spec.build(**options)
    if spec.layer is None:
        place = find_place(network) if layer is None else read_at(network, layer)
    else:
        place = Place(layer or spec.layer, spec.channels_last, spec.prefix_tokens, spec.norm)
    return Encoder(
        network,
        place.layer,
        channels_last=place.channels_last,
        prefix_tokens=place.prefix_tokens,
        norm=place.norm,
    )


def read_at(network: nn.Module, layer: str) -> Place:
    """A layer that somebody named, with what the network says of its maps."""
    try:
        return find_place(network)._replace(layer=layer)
    except ValueError:
        return Place(layer)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Which encoder, and what it starts from."""

    name: str = "small-resnet"
    """A name of ENCODERS, or timm:NAME, any network of timm."""
    width: int = 16
    """Channels of the first stage (small-resnet), or a sixth of a token's (small-vit)."""
    drop_path: float = 0.0
    """Stochastic depth, for networks of timm."""
    layer: str | None = None
    """The layer whose map the Mixer reads; null: one that suits the network (stride 16, or the middle)."""
    weights: str | None = None
    """Weights to start from: timm, lite0, a run folder, a .safetensors, .pth or .pt file; null: random."""
    frozen: int = 0
    """How many of the first stages do not learn: 1 is the stem, 2 the first stage (block) as well, ..."""
    freeze_norm: bool = False
    """Batch norm keeps the statistics that it has; its scale and shift learn where their stage does."""

    def __post_init__(self) -> None:
        spec = find_spec(self.name)
        check_at_least(1, self, "encoder", "width")
        check_below_one(self, "encoder", "drop_path")
        check_not_negative(self, "encoder", "frozen")
        if self.weights is not None and not self.weights.strip():
            raise ValueError("encoder.weights must name a source or a file, got nothing; null: random.")
        if self.drop_path and "drop_path_rate" not in spec.takes:
            able = ", ".join(name for name, spec in ENCODERS.items() if "drop_path_rate" in spec.takes)
            raise ValueError(
                f"{self.name} has no stochastic depth: leave encoder.drop_path at 0, or take one of {able}."
            )

    def build(self, size: int, **options: Any) -> Encoder:
        """A fresh encoder for pictures of `size` px, with random weights; options go to its builder."""
        spec = find_spec(self.name)
        if size % spec.multiple:
            raise ValueError(
                f"{self.name} takes pictures with a side of {spec.multiple} n pixels, got data.size {size}."
            )
        known = {"width": self.width, "size": size, "drop_path_rate": self.drop_path}
        given = {name: known[name] for name in spec.takes}
        encoder = build_encoder(self.name, layer=self.layer, **given, **options)
        smallest = largest_stride(encoder.network) if spec.smallest is None else spec.smallest
        if size < smallest:
            raise ValueError(
                f"{self.name} sees {smallest} pixels as one position, so pictures of {size} px are too "
                f"small: take --data.size {smallest} or more, or a network for them (resnet18-cifar)."
            )
        encoder.hold(freeze_stages(encoder.network, self.frozen), norms=self.freeze_norm)
        return encoder
