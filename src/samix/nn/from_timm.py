"""timm's networks without their classifier.

timm and the torchvision it imports take longer to import than torch, so they come with the first network
that is built: who mixes for a network of their own never waits for them.
"""

from typing import Any, NamedTuple

from torch import nn

from samix.core.shapes import Stats
from samix.core.words import suggest

PREFIX = "timm:"
"""Names of encoders that begin with it are networks of timm: 'timm:resnet50'."""


class Built(NamedTuple):
    """How a network of timm was made: `timm.create_model(name, **options)`."""

    name: str
    options: dict[str, Any]


def timm_network(name: str, **options: Any) -> nn.Module:
    """A network of timm, images -> features."""
    import timm

    network = timm.create_model(name, num_classes=0, **options)
    network.built = Built(name, options)  # type: ignore[assignment]
    return network


def check_timm_name(name: str) -> None:
    """Refuses a name that timm has no network for."""
    import timm

    base, _, tag = name.partition(".")
    if not timm.is_model(base):
        close = suggest(base, timm.list_models(), most=0)
        raise ValueError(f"timm has no network {close} `timm.list_models()` lists all of them.")
    if tag and tag not in (tags := [each.partition(".")[2] for each in timm.list_pretrained(f"{base}.*")]):
        raise ValueError(f"timm has no weights of {base} called {suggest(tag, tags)}")


def one_size_only(name: str) -> bool:
    """Whether timm builds this network for pictures of one size (`img_size`)."""
    import timm

    found = timm.get_pretrained_cfg(name)
    return bool(found and found.fixed_input_size)


def timm_stats(name: str) -> Stats | None:
    """Mean and standard deviation of the pictures that timm's weights of this network were trained on."""
    import timm

    found = timm.get_pretrained_cfg(name)
    return None if found is None else Stats(tuple(found.mean), tuple(found.std))  # type: ignore[arg-type]


class Place(NamedTuple):
    """Where a Mixer reads in a network, and what the maps look like there."""

    layer: str
    channels_last: bool = False
    prefix_tokens: int = 0
    norm: str | None = None


def find_place(network: nn.Module) -> Place:
    """The last stage with a stride of at most 16; of a transformer without stages the middle block.

    ResNet, ResNeXt: layer3; RegNet: s3; EfficientNet, MobileNet: blocks.4; ConvNeXt: stages.2;
    Swin: layers.2; ViT, DeiT of 12 blocks: blocks.5, seen through the network's last norm.
    """
    known: Any = getattr(network, "feature_info", None)
    if not known:
        raise ValueError(
            f"timm does not say which layers {type(network).__name__} has: name one for the Mixer to read, "
            "--encoder.layer NAME."
        )
    strides = [stage["reduction"] for stage in known]
    channels_last = getattr(network, "output_fmt", "NCHW") == "NHWC"
    if len(known) > 1 and len(set(strides)) == 1:
        norm = "norm" if isinstance(getattr(network, "norm", None), nn.Module) else None
        prefix = int(getattr(network, "num_prefix_tokens", 0))
        return Place(known[len(known) // 2 - 1]["module"], channels_last, prefix, norm)
    small = [stage for stage, stride in zip(known, strides, strict=True) if stride <= 16]
    return Place((small or known)[-1]["module"], channels_last)


def largest_stride(network: nn.Module) -> int:
    """How many pixels of a picture's side one position of the last map stands for; 1 where nobody says."""
    known: Any = getattr(network, "feature_info", None)
    return max((int(stage["reduction"]) for stage in known), default=1) if known else 1
