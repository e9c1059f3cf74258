"""What policies that look at pictures need to be right: normalisation, class labels, the maps of a layer."""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from samix.core.devices import at_hand
from samix.core.shapes import Images, Maps, Stats
from samix.mix.targets import Target
from samix.nn.encoder import read_layer
from samix.nn.frozen import run_frozen


def check_looked_at(needs: Sequence[str], stats: Stats | None, x: Images, y: Target) -> None:
    """Refuses numbers for other channels than the images', and labels without classes for a saliency."""
    if "pixels" in needs and stats is not None and len(stats.mean) != x.shape[1]:
        raise ValueError(
            f"mean and std have one value per channel: {len(stats.mean)} values, {x.shape[1]} channels."
        )
    classes = isinstance(y, Tensor) and (y.ndim == 2 or (y.ndim == 1 and not y.is_floating_point()))
    if not classes and ("saliency" in needs or "labels" in needs):
        raise ValueError(
            "the policy looks at a classifier's loss, so labels must be class indices [B] or rows "
            f"[B, classes]; got {list(y.shape) if isinstance(y, Tensor) else type(y).__name__}. "
            "Take a policy that needs none: cutmix, fmix, ..."
        )


def warn_of_pixels(x: Images, stats: Stats | None) -> None:
    """Warns of images that were clearly not normalised by these numbers: the policy would see others."""
    if stats is None or not at_hand(x):
        return  # without stats the supplier refuses images outside [0, 1]
    mean, std = (torch.tensor(values).to(x).view(1, -1, 1, 1) for values in stats)
    pixels = x.detach() * std + mean
    raw = min(stats.mean) > 0 and bool(x.min() >= 0) and bool(x.max() <= 1)
    if raw or bool(pixels.min() < -0.5) or bool(pixels.max() > 1.5):
        warnings.warn(
            f"the policy looks at pixels in [0, 1], but the images lie in [{float(x.min()):.2f}, "
            f"{float(x.max()):.2f}], which mean={list(stats.mean)} and std={list(stats.std)} do not turn "
            "into such: give Mix the numbers of your normalisation, or none for images in [0, 1].",
            stacklevel=4,
        )


def maps_of(model: nn.Module | None, layer: str | None) -> Callable[[Images], Maps] | None:
    """Images -> the maps of the model's layer, the model frozen; None without a layer."""
    if model is None or layer is None:
        return None

    def maps(x: Images) -> Maps:
        return run_frozen(model, lambda network: read_layer(network, layer, x))

    return maps
