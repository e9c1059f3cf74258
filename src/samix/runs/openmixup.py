"""Checkpoints of the official code (OpenMixup): a Mixer that was trained there, as a policy here.

The official block paints the partner and takes 1 minus it for the first image. Here the first image is
painted: the pair changes places, so weights that read the concatenated pair swap their halves. What a
checkpoint does not tell (activation, upsampling, k of the rescaled lam) is as in the published settings,
and can be said.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from samix.core.seeds import seeded
from samix.core.shapes import Stats
from samix.learned.frozen import FrozenMixer, Painter
from samix.learned.mixer import Mixer, MixerConfig
from samix.nn.pretrained import read_torch
from samix.nn.zoo import Network

BLOCK = "mix_block."
BACKBONES = ("backbone_k.", "backbone.", "encoder_k.0.")
"""Where the network that the Mixer reads may stand, the best place first."""
CIFAR = Stats((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
IMAGENET = Stats((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
RESNETS: dict[tuple[int, ...], str] = {(2, 2, 2, 2): "resnet18", (3, 4, 6, 3): "resnet34"}
BOTTLENECKS: dict[tuple[int, ...], str] = {(3, 4, 6, 3): "resnet50", (3, 4, 23, 3): "resnet101"}
GROUPED: dict[tuple[int, ...], str] = {(3, 4, 6, 3): "resnext50", (3, 4, 23, 3): "resnext101"}
CONTENT = {
    "value.conv.0.conv.weight": "content.0.weight",
    "value.conv.0.conv.bias": "content.0.bias",
    **{
        f"value.conv.0.bn.{name}": f"content.1.{name}"
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    },
    "value.conv.1.conv.weight": "content.4.weight",
    "value.conv.1.conv.bias": "content.4.bias",
    "value.weight": "content.weight",
    "value.bias": "content.bias",
}
"""Official names of the content's weights, and ours."""


class Block(NamedTuple):
    """An official MixBlock in our words."""

    settings: MixerConfig
    channels: int
    """Of the maps that it reads."""
    weights: dict[str, Tensor]
    """By our names."""

    def build(self, **changes: Any) -> Mixer:
        """The Mixer with these weights; changes are settings that a checkpoint does not tell."""
        mixer = MixerConfig(**{**vars(self.settings), **changes}).build(self.channels)
        try:
            mixer.load_state_dict(self.weights)
        except RuntimeError as error:
            raise ValueError(f"the official MixBlock does not fit {self.settings}: {error}") from error
        return mixer


def read_block(official: Mapping[str, Tensor]) -> Block:
    """Settings and weights of an official MixBlock, by names as in its state dict ('query.conv.weight').

    SAMix's has two projections of the concatenated pair and a non-linear content; AutoMix's has one
    projection, a linear content and, unless it was switched off, lam as one more channel.
    """
    query = take(official, "query.conv.weight")
    nonlinear = "value.conv.0.conv.weight" in official
    content = take(official, "value.conv.0.conv.weight" if nonlinear else "value.weight")
    inputs, inner = content.shape[1], query.shape[0]
    pair = query.shape[1] == 2 * inputs
    concat = not pair and inputs % 2 == 1  # no stage of a network has an odd number of channels
    channels = inputs - concat
    if not pair and query.shape[1] != inputs:
        raise ValueError(
            f"the official MixBlock projects {query.shape[1]} channels but its content reads {inputs}: "
            "only the blocks of the published SAMix (twice as many) and AutoMix (as many) are known."
        )
    settings = MixerConfig(
        encoding="adaptive" if pair else "concat" if concat else "none",
        attention="mixing-two" if pair else "cross",
        content="nonlinear" if nonlinear else "linear",
        activation="elu" if nonlinear else "relu",
        bias=not nonlinear or "value.conv.0.conv.bias" in official,
        upsample="bilinear" if pair else "nearest",
        sigmoid_last=True,
        reduction=max(channels // inner, 1),
    )
    weights = rename_block(official, pair)
    if pair:
        weights["encoding.gamma"] = torch.ones(())  # the official code's lam_mul, which it does not learn
    return Block(settings, channels, weights)


def rename_block(official: Mapping[str, Tensor], pair: bool) -> dict[str, Tensor]:
    """Weights of an official block by our names, the halves of a concatenated pair swapped."""
    attention = ("query", "key") if pair else ("query",)
    ours = {f"{name}.conv.{kind}": (name, kind) for name in attention for kind in ("weight", "bias")}
    renamed = {}
    for name, value in official.items():
        if name in ours:
            part, kind = ours[name]
            swapped = value.roll(value.shape[1] // 2, dims=1) if pair and kind == "weight" else value
            renamed[f"attention.{part if pair else 'project'}.{kind}"] = swapped
        elif name in CONTENT:
            renamed[CONTENT[name]] = value
        else:
            raise ValueError(f"the official MixBlock has a weight that samix does not know: {name!r}.")
    return renamed


def take(official: Mapping[str, Tensor], name: str) -> Tensor:
    """A four-dimensional weight of that name."""
    found = official.get(name)
    if not isinstance(found, Tensor) or found.ndim != 4:
        raise ValueError(f"this is not an official MixBlock: it has no convolution {name!r}.")
    return found


def read_checkpoint(path: Path) -> dict[str, Tensor]:
    """The tensors of an official checkpoint; read as data, never as code."""
    tensors = read_torch(path)
    if not any(name.startswith(BLOCK) for name in tensors):
        raise ValueError(
            f"{path} is not a readable safetensors file but a pickle, and no official checkpoint of SAMix or "
            f"AutoMix either: it has no weights {BLOCK}*."
        )
    return tensors


def load_official(
    path: str | PathLike[str],
    *,
    stats: Stats | None = None,
    size: int | None = None,
    rescale: float | None = None,
    upsample: str | None = None,
    activation: str | None = None,
) -> FrozenMixer:
    """The Mixer of an official checkpoint (.pth), frozen, with the ResNet or ResNeXt that it reads.

    Pictures are normalised by `stats` and looked at with the short side `size`: without them as those of
    CIFAR-100 (32 px) or of ImageNet (224 px), as the network's stem tells. The other three are what the file
    does not tell: k of the rescaled lam, upsampling and activation of the content.
    """
    state = read_checkpoint(Path(path))
    block = read_block(part(state, BLOCK))
    backbone = next((found for prefix in BACKBONES if (found := part(state, prefix))), {})
    network = recognise(backbone, Path(path))
    small = network.name.endswith("-cifar")
    size, stats = size or (32 if small else 224), stats or (CIFAR if small else IMAGENET)
    said = {"rescale": rescale, "upsample": upsample, "activation": activation}
    with seeded(0):
        encoder = network.build(size)
        mixer = block.build(**{name: value for name, value in said.items() if value is not None})
    weights = {name: value for name, value in backbone.items() if not name.startswith("fc.")}
    try:
        encoder.network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the backbone in {path} does not fit {network.name}: {error}") from error
    if encoder.probe(size)[0] != block.channels:
        raise ValueError(
            f"the Mixer in {path} reads {block.channels} channels, but layer {encoder.layer!r} of "
            f"{network.name} has {encoder.probe(size)[0]}: a Mixer of another layer cannot be read yet."
        )
    return FrozenMixer(painter=Painter(encoder, mixer, stats, size))


def part(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors below a name, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def recognise(backbone: Mapping[str, Tensor], path: Path) -> Network:
    """Which of our networks an official backbone is, by its names and shapes."""
    depths = tuple(
        len({name.split(".")[1] for name in backbone if name.startswith(f"layer{stage}.")})
        for stage in range(1, 5)
    )
    stem, second = backbone.get("conv1.weight"), backbone.get("layer1.0.conv2.weight")
    third = "layer1.0.conv3.weight" in backbone
    grouped = third and second is not None and second.shape[0] != second.shape[1]
    name = (GROUPED if grouped else BOTTLENECKS if third else RESNETS).get(depths)
    if stem is not None and stem.shape[-1] == 3 and name is not None:
        name = f"{name}-cifar"
    try:
        if name is not None:
            return Network(name=name)
    except ValueError:
        pass
    raise ValueError(
        f"the backbone in {path} is none that samix can read from an official checkpoint: it has blocks "
        f"{depths} in layer1 to layer4. Known: ResNet-18, -34, -50, -101, ResNeXt-50, -101 (CIFAR stems: "
        "ResNet-18 and ResNeXt-50)."
    )
