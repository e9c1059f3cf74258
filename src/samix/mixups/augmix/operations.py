"""The nine operations of AugMix (arXiv 1912.02781) on 8-bit pictures, batched: one level per picture.

The strength of an operation is its `level`, |l| in [.1, 10]. Its sign is the direction of a move; operations
on shades ignore the sign. Shades: autocontrast; equalise; posterise to 4 - floor(.4 l) bits; solarise from
256 - floor(25.6 l) on. Moves (bilinear, black outside the picture): rotate by floor(3 l) degrees, shear by
.03 l, translate by floor(l side / 30) pixels.

Source: google-research/augmix, which calls Pillow. Results agree with Pillow bit for bit; those of rotation,
shear and autocontrast to one shade of 255.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.shapes import PerSample, RawImages

SHADES = 256
"""Values of an 8-bit channel."""
ROUNDING = 1 / 32
"""Added before truncating, in shades: interpolating a shade n in float32 may give slightly less than n."""


def look_up(images: RawImages, table: Int[Tensor, "B c 256"]) -> RawImages:
    """Replaces every shade by its entry in the table of its picture and channel."""
    return table.to(torch.uint8).gather(2, images.flatten(2).long()).view_as(images)


def autocontrast(images: RawImages, level: PerSample) -> RawImages:
    """Stretches each channel to [0, 255]; a channel with one shade stays as it is."""
    low, high = (edge[..., None].long() for edge in (images.amin(dim=(2, 3)), images.amax(dim=(2, 3))))
    shades = torch.arange(SHADES, device=images.device)
    stretched = (shades - low) * (SHADES - 1) // (high - low).clamp(min=1)
    return look_up(images, torch.where(high > low, stretched.clamp(0, SHADES - 1), shades))


def equalise(images: RawImages, level: PerSample) -> RawImages:
    """Flattens the histogram of each channel, unless fewer than 255 pixels are below its top shade."""
    shades = images.flatten(2).long()
    counts = shades.new_zeros(*shades.shape[:2], SHADES)
    counts = counts.scatter_add(2, shades, torch.ones_like(shades))
    brightest = counts.gather(2, shades.amax(dim=2, keepdim=True))
    step = (shades.shape[2] - brightest) // (SHADES - 1)
    darker = counts.cumsum(dim=2) - counts
    flattened = ((darker + step // 2) // step.clamp(min=1)).clamp(max=SHADES - 1)
    return look_up(images, torch.where(step > 0, flattened, torch.arange(SHADES, device=images.device)))


def posterise(images: RawImages, level: PerSample) -> RawImages:
    """Keeps the upper 4 - floor(.4 l) bits, at least one."""
    bits = (4 - (0.4 * level.abs()).long()).clamp(min=1)
    return images & (SHADES - 2 ** (8 - bits)).view(-1, 1, 1, 1).to(torch.uint8)


def solarise(images: RawImages, level: PerSample) -> RawImages:
    """Inverts shades from 256 - floor(25.6 l) on."""
    threshold = SHADES - (25.6 * level.abs()).long()
    return torch.where(images < threshold.view(-1, 1, 1, 1), images, SHADES - 1 - images)


def warp(images: RawImages, matrix: Float[Tensor, "B 6"]) -> RawImages:
    """Pixel (x, y) shows the input at (a x + b y + c, d x + e y + f), or black; matrix rows are (a, ..., f).

    Coordinates start at the top left corner, so the centre of the first pixel is (.5, .5).
    """
    height, width = images.shape[-2:]
    a, b, c, d, e, f = matrix.float().view(-1, 6, 1, 1).unbind(dim=1)
    x = torch.arange(width, device=images.device) + 0.5
    y = torch.arange(height, device=images.device)[:, None] + 0.5
    # Not affine_grid: its matrix product may run in reduced precision (TF32), which is a tenth of a pixel.
    source_x, source_y = a * x + b * y + c, d * x + e * y + f  # [B, H, W]
    inside = (source_x >= 0) & (source_x < width) & (source_y >= 0) & (source_y < height)
    grid = torch.stack([2 * source_x / width - 1, 2 * source_y / height - 1], dim=-1)
    # Zero padding would fade the outermost half pixel; Pillow's border is sharp.
    moved = F.grid_sample(images.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return ((moved + ROUNDING) * inside[:, None]).to(torch.uint8)


def rotate(images: RawImages, level: PerSample) -> RawImages:
    """Rotates by floor(3 l) degrees around the middle, counter-clockwise for positive levels."""
    angle = (3 * level).trunc() * (math.pi / 180)
    cos, sin = angle.cos(), angle.sin()
    x, y = images.shape[-1] / 2, images.shape[-2] / 2
    return warp(
        images, torch.stack([cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y], dim=1)
    )


def shear_x(images: RawImages, level: PerSample) -> RawImages:
    """Shears: row y is read .03 l y further to the right."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return warp(images, torch.stack([one, 0.03 * level, zero, zero, one, zero], dim=1))


def shear_y(images: RawImages, level: PerSample) -> RawImages:
    """Shears: column x is read .03 l x further down."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    return warp(images, torch.stack([one, zero, zero, 0.03 * level, one, zero], dim=1))


def translate_x(images: RawImages, level: PerSample) -> RawImages:
    """Translates: pixels are read floor(l W / 30) further to the right."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    shift = (level * images.shape[-1] / 30).trunc()
    return warp(images, torch.stack([one, zero, shift, zero, one, zero], dim=1))


def translate_y(images: RawImages, level: PerSample) -> RawImages:
    """Translates: pixels are read floor(l H / 30) further down."""
    one, zero = torch.ones_like(level), torch.zeros_like(level)
    shift = (level * images.shape[-2] / 30).trunc()
    return warp(images, torch.stack([one, zero, zero, zero, one, shift], dim=1))


OPERATIONS: tuple[Callable[[RawImages, PerSample], RawImages], ...] = (
    autocontrast,
    equalise,
    posterise,
    rotate,
    solarise,
    shear_x,
    shear_y,
    translate_x,
    translate_y,
)
"""Without those that overlap the corruption test sets: colour, contrast, brightness, sharpness."""
