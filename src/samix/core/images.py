"""Normalised images, pixels in [0, 1] and bytes: the ways back from what a network sees."""

import torch

from samix.core.devices import send
from samix.core.shapes import Images, RawImages, Stats


def to_pixels(x: Images, stats: Stats) -> Images:
    """Normalised images back in [0, 1]."""
    mean, std = (send(torch.tensor(values, dtype=x.dtype), x.device).view(1, -1, 1, 1) for values in stats)
    return (x.detach() * std + mean).clamp(0, 1)


def to_bytes(pixels: Images) -> RawImages:
    """[0, 1] to 0 ... 255; in float32, so that half-precision pixels are rounded once."""
    return (pixels.detach().float() * 255).round_().clamp_(0, 255).to(torch.uint8)
