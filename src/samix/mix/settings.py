"""What the settings of a `Mix` may be, and what other libraries call them."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import nn

from samix.core.shapes import Stats
from samix.core.words import suggest

Mode: TypeAlias = Literal["batch", "pair", "elem", "half"]

MOST_CLASSES = 2**31 - 1
"""What a class index can be in any integer type; nobody's rows are as long."""

TIMMS = ("mixup_alpha", "cutmix_alpha", "cutmix_minmax", "switch_prob", "label_smoothing", "num_classes")
"""Arguments of `timm.data.Mixup` that are called otherwise here; `Mix.timm` takes them."""
THEIR_NAMES = {
    "num_classes": "classes=",
    "mixup_alpha": "alpha=",
    "cutmix_alpha": "alpha=",
    "label_smoothing": "smoothing=",
    "mix_prob": "prob=",
    "p": "prob=",
    "switch_prob": "policy={'mixup': 0.5, 'cutmix': 0.5}",
    "cutmix_minmax": "policy=CutMix(minmax=(0.2, 0.8))",
    "labels_getter": "keys=('image', 'label')",
    "data_keys": "keys=('image', 'label')",
    "same_on_batch": "mode='batch' or mode='elem'",
    "seed": "generator=torch.Generator().manual_seed(0)",
}
"""Arguments of timm, torchvision, kornia and Keras, and what says the same here."""


class Rule(NamedTuple):
    """What holds for a setting, in code and in words."""

    holds: Callable[[Any], bool]
    words: str


def is_number(value: object) -> bool:
    """A number that is one: no truth value, not NaN, not infinite."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value: object, least: int) -> bool:
    """A whole number from `least` on."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def are_classes(value: Any) -> bool:
    """A number of classes, none, or one of both for each head."""
    if isinstance(value, Mapping):
        return len(value) > 0 and all(are_classes(each) for each in value.values())
    if isinstance(value, tuple | list):
        return len(value) > 0 and all(are_classes(each) for each in value)
    return value is None or (is_count(value, 1) and int(value) <= MOST_CLASSES)


def are_keys(value: Any) -> bool:
    """None, or at least two different words."""
    words = not isinstance(value, str) and isinstance(value, Sequence)
    return value is None or (
        words and all(isinstance(key, str) for key in value) and len(set(value)) == len(value) >= 2
    )


def is_truth(value: object) -> bool:
    """True or False."""
    return isinstance(value, bool)


RULES: dict[str, Rule] = {
    "classes": Rule(are_classes, "must be a whole number of at least 1"),
    "prob": Rule(lambda value: is_number(value) and 0 <= value <= 1, "must lie in [0, 1]"),
    "correct_lam": Rule(is_truth, "must be True or False"),
    "smoothing": Rule(lambda value: is_number(value) and 0 <= value < 1, "must lie in [0, 1)"),
    "off_epoch": Rule(lambda value: value is None or is_count(value, 0), "must be a whole number from 0 on"),
    "epoch": Rule(lambda value: is_count(value, 0), "must be a whole number from 0 on"),
    "mixup_enabled": Rule(is_truth, "must be True or False"),
    "per_frame": Rule(is_truth, "must be True or False"),
    "keys": Rule(are_keys, "must name images and labels, such as ('image', 'label')"),
    "generator": Rule(
        lambda value: value is None or (isinstance(value, torch.Generator) and value.device.type == "cpu"),
        "must be a torch.Generator on the CPU",
    ),
}
"""Settings that may also be changed later."""


ARGUMENTS = ("policy", *RULES, "alpha", "mode", "model", "layer", "teacher", "mean", "std")
"""What a `Mix` may be made with."""


def check_setting(name: str, value: object) -> None:
    """Refuses a value that the setting's rule does not allow."""
    rule = RULES.get(name)
    if rule is not None and not rule.holds(value):
        raise ValueError(f"{name} {rule.words}, got {value!r}.")


def check_network(name: str, value: object) -> None:
    """Refuses what is no network."""
    if value is not None and not isinstance(value, nn.Module):
        raise ValueError(f"{name} must be a network, an nn.Module; got {type(value).__name__}.")


def check_layer(layer: object) -> None:
    """Refuses what is no name of a layer."""
    if layer is not None and not isinstance(layer, str):
        raise ValueError(f"layer must be a name such as 'layer4', got {layer!r}.")


def check_mode(mode: object) -> None:
    """Refuses a mode that does not exist."""
    if mode not in get_args(Mode):
        raise ValueError(f"unknown mode {suggest(str(mode), get_args(Mode))}")


def check_names(unknown: Mapping[str, object]) -> None:
    """Refuses arguments that `Mix` does not have, and says what they are called here."""
    for name in unknown:
        if name in THEIR_NAMES:
            timm = f", or Mix.timm({name}=...)" if name in TIMMS else ""
            raise TypeError(f"Mix has no argument {name!r}: write {THEIR_NAMES[name]}{timm}.")
        raise TypeError(f"Mix has no argument {suggest(name, ARGUMENTS)}")


def stats_of(mean: Sequence[float] | None, std: Sequence[float] | None) -> Stats | None:
    """How images were normalised, one number per channel; None for images in [0, 1]."""
    if mean is None and std is None:
        return None
    if mean is None or std is None:
        raise ValueError("mean and std belong together: give both, or neither for images in [0, 1].")
    try:
        stats = Stats(tuple(float(value) for value in mean), tuple(float(value) for value in std))
    except (TypeError, ValueError):
        raise ValueError(
            f"mean and std have one number per channel each; got {mean!r} and {std!r}."
        ) from None
    if not stats.mean or len(stats.mean) != len(stats.std):
        raise ValueError(
            f"mean and std have one value per channel each; got {list(stats.mean)} and {list(stats.std)}."
        )
    if not all(map(math.isfinite, stats.mean)) or not all(0 < value < math.inf for value in stats.std):
        raise ValueError(
            f"mean must be finite and std positive; got {list(stats.mean)} and {list(stats.std)}."
        )
    return stats
