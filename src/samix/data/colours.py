"""Random colours and blur for whole batches: every picture draws whether it changes, and by how much.

Images are float32 in [0, 1]. Parameters and changes are torchvision's, with these differences:

- The order of the four colour changes is drawn per call of `jitter` (`ssl_views.two_views` calls it for every
  2**18 pixels of a view: 256 pictures of 32 px, 28 of 96 px), not per picture.
- No fractions are lost between changes. torchvision cuts them off after each, so its jittered bytes are
  darker, by about one shade.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.seeds import uniform
from samix.core.shapes import Images, PerSample

Strengths = tuple[float, float, float, float]
LUMA = (0.2989, 0.587, 0.114)
"""What red, green and blue add to brightness."""


# Colours.


def jitter(x: Images, strengths: Strengths, prob: float) -> Images:
    """Changes brightness, contrast, saturation and hue of a share `prob` of the pictures, in a random order.

    Every picture draws its own factors U(max(0, 1 - s), 1 + s) and hue U(-h, h); the order is drawn once.
    """
    *scales, turn = strengths
    ranges = [(max(0.0, 1 - scale), 1 + scale) for scale in scales] + [(-turn, turn)]

    def change(chosen: Images) -> Images:
        for which in torch.randperm(len(ADJUSTMENTS)).tolist():
            factor = uniform((len(chosen),), *ranges[which]).to(x)
            if strengths[which]:
                chosen = ADJUSTMENTS[which](chosen, factor)
        return chosen

    return sometimes(x, prob, change)


def to_grey(x: Images, prob: float) -> Images:
    """Turns a share `prob` of the pictures grey."""
    return sometimes(x, prob, lambda chosen: grey(chosen).expand_as(chosen))


def solarize(x: Images, prob: float) -> Images:
    """Inverts what is brighter than half (bytes from 128 on) in a share `prob` of the pictures."""
    return sometimes(x, prob, lambda chosen: chosen.minimum(1 - chosen))


def grey(x: Images) -> Float[Tensor, "B 1 H W"]:
    """Brightness of every pixel."""
    red, green, blue = LUMA
    return (red * x[:, :1]).add_(x[:, 1:2], alpha=green).add_(x[:, 2:], alpha=blue)


def adjust_brightness(x: Images, factor: PerSample) -> Images:
    """Every pixel times the factor."""
    return (x * factor.view(-1, 1, 1, 1)).clamp_(0, 1)


def adjust_contrast(x: Images, factor: PerSample) -> Images:
    """The distance of every pixel to the picture's mean brightness times the factor."""
    mean = x.mean(dim=(2, 3)) @ x.new_tensor(LUMA)
    return torch.lerp(mean.view(-1, 1, 1, 1), x, factor.view(-1, 1, 1, 1)).clamp_(0, 1)


def adjust_saturation(x: Images, factor: PerSample) -> Images:
    """The distance of every pixel to its own grey times the factor."""
    return torch.lerp(grey(x), x, factor.view(-1, 1, 1, 1)).clamp_(0, 1)


def adjust_hue(x: Images, turn: PerSample) -> Images:
    """Turns every pixel's hue by a share of the colour circle; saturation and value of HSV stay."""
    red, green, blue = x.unbind(dim=1)
    value = x.amax(dim=1)
    chroma = value - x.amin(dim=1)
    # The hue in sixths of the circle, times chroma: red is at 0, green at 2, blue at 4.
    not_red = torch.where(
        value == green, (blue - red).add_(chroma, alpha=2), (red - green).add_(chroma, alpha=4)
    )
    hue = torch.where(value == red, green - blue, not_red) / chroma.clamp(min=1e-6)
    hue = hue.add_(6 * turn[:, None, None]).remainder_(6)
    # A channel is at `value` up to one sixth from its own hue, and a full chroma below from two sixths on.
    drop = torch.stack([2 - (hue - 3).abs_(), (hue - 2).abs_() - 1, (hue - 4).abs_() - 1], dim=1).clamp_(0, 1)
    return value[:, None] - drop.mul_(chroma[:, None])


ADJUSTMENTS: tuple[Callable[[Images, PerSample], Images], ...] = (
    adjust_brightness,
    adjust_contrast,
    adjust_saturation,
    adjust_hue,
)
"""In the order of the strengths that `jitter` takes."""


# Blur.


def gaussian_blur(x: Images, sigma: tuple[float, float], prob: float) -> Images:
    """Blurs a share `prob` of the pictures, each by its own U(*sigma) pixels."""
    return sometimes(x, prob, lambda chosen: blur(chosen, uniform((len(chosen),), *sigma).to(x)))


def blur(x: Images, sigma: PerSample) -> Images:
    """Gaussian blur over about a tenth of the side, an odd number of pixels and at least 3; edges reflect."""
    count, channels, height, width = x.shape
    taps = max(min(height, width) // 10 | 1, 3)
    offset = torch.arange(taps, device=x.device) - taps // 2
    kernel = (-((offset / sigma[:, None]) ** 2) / 2).softmax(dim=1)  # [B, taps]
    kernel = kernel.repeat_interleave(channels, dim=0)[:, None]
    # Pictures and channels are groups of one convolution, as each has a kernel of its own.
    lines = F.pad(x, (taps // 2,) * 4, mode="reflect").flatten(0, 1)[None]
    lines = F.conv2d(lines, kernel[:, :, None, :], groups=count * channels)
    return F.conv2d(lines, kernel[:, :, :, None], groups=count * channels).view_as(x)


# Chance.


def sometimes(x: Images, prob: float, change: Callable[[Images], Images]) -> Images:
    """`change` applied to every picture with probability `prob`."""
    chosen = (torch.rand(len(x)) < prob).nonzero()[:, 0].to(x.device)
    if len(chosen) in (0, len(x)):
        return change(x) if len(chosen) else x
    return x.index_copy(0, chosen, change(x[chosen]))


__all__ = ["Strengths", "gaussian_blur", "jitter", "solarize", "to_grey"]
