"""Fine-grained static saliency: how much a pixel differs from its surround, at six scales.

Montabone and Soto, Image and Vision Computing 28 (2010); the version that SaliencyMix uses is OpenCV's
`StaticSaliencyFineGrained`, and this one computes the same for a whole batch. Grey value g of an 8-bit
picture, blurred twice by (1, 2, 1) / 4; for each radius r the mean m of the other pixels among rows
y - r + 1 ... y + r and columns x - r + 1 ... x + r, cut off at the border; then

    on = sum_r floor(max(g - m, 0)),  off = sum_r floor(max(m - g, 0)),  saliency = min(on' + off', 255)

where ' scales each of the two to a maximum of 255 (floor). Rounding, the border (mirrored without its last
row) and the weights of the channels are OpenCV's: it reads channels as blue, green, red, so the first channel
of an RGB picture weighs .114 and the last .299, as in the code of SaliencyMix. Of any other
number of channels the mean is taken.

Differs from OpenCV only where that goes wrong: on' + off' > 255 overflows there and is cut off at 255 here,
and a flat picture is 0 everywhere (0 / 0 in OpenCV).
"""

from collections import Counter

import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor
from torch.nn import functional as F

from samix.core.shapes import Saliency, Size

RADII = (12, 24, 48, 28, 56, 112)
"""Half the side of the surround at each scale, in pixels."""
CHANNELS = (3735, 19235, 9798)
"""Weights (.114, .587, .299) of the channels in units of 2^-15, as OpenCV stores them."""
CHUNK = 2**18
"""Pixels that are worked on at once, so that intermediate results fit into the processor's cache."""


def fine_grained_saliency(pixels: Shaped[Tensor, "B c H W"]) -> UInt8[Tensor, "B H W"]:
    """The saliency of 8-bit pictures, 0 to 255."""
    if pixels.dtype != torch.uint8:
        raise TypeError(
            f"fine_grained_saliency needs 8-bit pixels (torch.uint8), got {pixels.dtype}. "
            "Undo the normalisation and pass (pixels * 255).round().to(torch.uint8)."
        )
    height, width = pixels.shape[-2:]
    pieces = pixels.split(max(1, CHUNK // (height * width)))
    return torch.cat([add_in_bytes(*on_off(blur(blur(to_grey(piece))))) for piece in pieces])


def add_in_bytes(on: Saliency, off: Saliency) -> UInt8[Tensor, "B H W"]:
    """min(on + off, 255) in 8 bits."""
    return (on + off).clamp(max=255).to(torch.uint8)


def to_grey(pixels: UInt8[Tensor, "B c H W"]) -> Saliency:
    """The weighted sum of three channels, or the mean of any other number, rounded to 8 bits."""
    if pixels.shape[1] != len(CHANNELS):
        return (pixels.float().mean(dim=1) + 0.5).floor()
    first, second, third = (weight * c for weight, c in zip(CHANNELS, pixels.int().unbind(1), strict=True))
    return ((first + second + third + 2**14) >> 15).float()


def blur(grey: Saliency) -> Saliency:
    """Blurs by (1, 2, 1) / 4 along both axes, then rounds (half up) to whole numbers."""
    mirrored = F.pad(grey[:, None], (1, 1, 1, 1), mode="reflect")[:, 0]
    rows = mirrored[:, :-2] + 2 * mirrored[:, 1:-1] + mirrored[:, 2:]
    both = rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:]
    return ((both + 8) / 16).floor()


def on_off(grey: Saliency) -> tuple[Saliency, Saliency]:
    """How far a pixel is above (on) and below (off) its surround, each scaled to a maximum of 255."""
    height, width = grey.shape[-2:]
    # Sums must be exact: float32 holds whole numbers only below 2^24.
    grey = grey.to(torch.float32 if 255 * height * width < 2**24 else torch.float64)
    integral = padded_integral(grey, min(max(RADII), height), min(max(RADII), width))
    total, size = torch.zeros_like(grey), torch.zeros_like(grey)
    # Windows are cut off at the border, so on small pictures the larger radii give the same window.
    radii = Counter((min(radius, height), min(radius, width)) for radius in RADII)
    for (vertical, horizontal), times in radii.items():
        count = window_length(height, vertical, grey)[:, None] * window_length(width, horizontal, grey)
        surround = window_sum(integral, (height, width), vertical, horizontal)
        # g - (sum - g) / (count - 1), in one division of whole numbers
        difference = (count * grey - surround).div_(count - 1).trunc_()
        total.add_(difference, alpha=times)
        size.add_(difference.abs_(), alpha=times)
    return scale_to_255(size + total), scale_to_255(size - total)  # 2 on, 2 off


def padded_integral(grey: Saliency, vertical: int, horizontal: int) -> Float[Tensor, "B y x"]:
    """The sum over all pixels above and left of each corner.

    The border is repeated, so that a window that crosses it is cut off there.
    """
    # Summed as integers, because CUDA has no deterministic cumsum of floats.
    corners = F.pad(grey.int().cumsum(1).cumsum(2).to(grey.dtype), (1, 0, 1, 0))
    return F.pad(corners[:, None], (horizontal, horizontal, vertical, vertical), mode="replicate")[:, 0]


def window_sum(integral: Float[Tensor, "B y x"], size: Size, vertical: int, horizontal: int) -> Saliency:
    """For every pixel the sum over rows y - r + 1 ... y + r and columns x - r + 1 ... x + r."""
    height, width = size
    # Row y starts at corner y + 1 - r and ends at corner y + 1 + r, counted from the end of the padding.
    row = (integral.shape[1] - height - 1) // 2 + 1
    column = (integral.shape[2] - width - 1) // 2 + 1
    columns = slice(column - horizontal, column + horizontal + width)
    below = integral[:, row + vertical : row + vertical + height, columns]
    above = integral[:, row - vertical : row - vertical + height, columns]
    bands = below - above
    return bands[..., 2 * horizontal :] - bands[..., :width]


def window_length(length: int, radius: int, like: Tensor) -> Float[Tensor, "N"]:
    """How many of the 2 r positions of the window around each pixel lie inside the picture."""
    position = torch.arange(length, device=like.device)
    inside = (position + radius + 1).clamp(max=length) - (position + 1 - radius).clamp(min=0)
    return inside.to(like.dtype)


def scale_to_255(values: Saliency) -> Saliency:
    """Scales each map to a maximum of 255 and rounds down; a map of zeros stays zero."""
    return (255 * values / values.amax(dim=(1, 2), keepdim=True).clamp(min=1)).floor()
