"""A classifier described as timm describes its own: config.json of `local-dir:` and `hf-hub:` models."""

import math
from typing import Any, NamedTuple

from torch import nn

from samix.core.shapes import Stats
from samix.nn.plain_timm import as_plain_timm

KEPT = ("classifier", "first_conv", "fixed_input_size")
"""What timm says of an architecture and wants to hear again; all else is about weights of its own."""
FOR_ALL = "samix.load_classifier('FOLDER'), or timm.create_model('local-dir:FOLDER', pretrained=True)."
FOR_SAMIX = "The network is not one of timm's: only samix.load_classifier('FOLDER') can read this folder."


class Seen(NamedTuple):
    """What a classifier knows of pictures: its classes, and how pictures become its images."""

    classes: tuple[str, ...]
    stats: Stats
    size: int
    """Side of the images."""
    test_resize: int | None = None
    """Short side before the centre crop; None: the whole picture is resized, whatever its shape."""

    @property
    def described(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "classes": list(self.classes),
            "mean": list(self.stats.mean),
            "std": list(self.stats.std),
            "size": self.size,
            "test_resize": self.test_resize,
        }


def for_timm(network: nn.Module, head: nn.Linear, name: str, seen: Seen) -> dict[str, Any]:
    """The config.json of a classifier in timm's format (`local-dir:`, `hf-hub:`); `name` is samix's of it."""
    plain = as_plain_timm(network, head, seen.size)
    own = getattr(network, "pretrained_cfg", {}) if plain else {}
    return {
        "note": FOR_ALL if plain else FOR_SAMIX,
        "architecture": plain.name if plain else f"samix/{name}",
        "num_classes": head.out_features,
        "num_features": head.in_features,
        "label_names": list(seen.classes),
        "model_args": plain.options if plain else {},
        "pretrained_cfg": {
            **{name: own[name] for name in KEPT if own.get(name) is not None},
            "input_size": [3, seen.size, seen.size],
            "interpolation": "bilinear" if seen.test_resize is None else "bicubic",
            "crop_pct": crop_share(seen.size, seen.test_resize),
            "crop_mode": "squash" if seen.test_resize is None else "center",
            "mean": list(seen.stats.mean),
            "std": list(seen.stats.std),
            "num_classes": head.out_features,
        },
    }


def crop_share(size: int, test_resize: int | None) -> float:
    """timm's crop_pct: it resizes the short side to floor(size / crop_pct) before the crop."""
    share = size / (test_resize or size)
    return share if math.floor(size / share) == (test_resize or size) else math.nextafter(share, 0)
