"""The embedded dataset: endless seeded pictures of one textured object on a cluttered background.

The class is the object's shape. Colour, texture, size, rotation and place say nothing about it, and all
the evidence lies in one place, so it matters which part of a picture a mixup keeps. The true mask of
every object comes with its picture. Shapes are implicit functions: positive inside, in units of the
shape's own radius, evaluated on a pixel grid for many pictures at once.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor
from torch.nn import functional as F

ROUNDS = 8
"""A chunk shows every class this often; chunks have seeds of their own, so a longer draw starts alike."""
DISTRACTORS = 5
TILT = 0.5
"""Objects lean by at most this angle (radians); a full turn makes the task much slower to learn."""


class Drawn(NamedTuple):
    """Pictures with their classes and with the place of the object in each."""

    images: UInt8[Tensor, "N 3 S S"]
    labels: Int[Tensor, "N"]
    masks: Bool[Tensor, "N 1 S S"]
    """True on the object."""


class Plane(NamedTuple):
    """Coordinates of every pixel of every picture, [B, S, S] each."""

    u: Tensor
    v: Tensor

    def turned(self, angle: Tensor) -> "Plane":
        """The same points seen from axes turned by `angle`."""
        cos, sin = angle.cos(), angle.sin()
        return Plane(cos * self.u + sin * self.v, cos * self.v - sin * self.u)


# ---------------------------------------------------------------- shapes


def box(at: Plane, centre: tuple[float, float], half: tuple[float, float]) -> Tensor:
    """A rectangle with half sides `half` around `centre`."""
    return torch.minimum(half[0] - (at.u - centre[0]).abs(), half[1] - (at.v - centre[1]).abs())


def union(*parts: Tensor) -> Tensor:
    """Inside any of the parts."""
    return torch.stack(parts).amax(dim=0)


def overlap(*parts: Tensor) -> Tensor:
    """Inside all of the parts."""
    return torch.stack(parts).amin(dim=0)


def disc(at: Plane) -> Tensor:
    """A full circle."""
    return 1 - torch.hypot(at.u, at.v)


def ring(at: Plane) -> Tensor:
    """A circle with a wide hole."""
    return 0.24 - (torch.hypot(at.u, at.v) - 0.76).abs()


def square(at: Plane) -> Tensor:
    """A square."""
    return box(at, (0.0, 0.0), (0.8, 0.8))


def triangle(at: Plane) -> Tensor:
    """An equilateral triangle."""
    corners = (math.pi / 3 * k for k in (1, 3, 5))
    return overlap(*(0.5 - at.u * math.cos(angle) - at.v * math.sin(angle) for angle in corners))


def star(at: Plane, points: int = 5, inner: float = 0.45) -> Tensor:
    """A star; its angles are folded onto one edge, from a tip to the next inner corner."""
    sector = 2 * math.pi / points
    angle = (torch.atan2(at.v, at.u) % sector - sector / 2).abs()
    folded = sector / 2 - angle
    x, y = inner * math.cos(sector / 2) - 1, inner * math.sin(sector / 2)
    radius = torch.hypot(at.u, at.v)
    return (y * (1 - radius * folded.cos()) + x * radius * folded.sin()) / math.hypot(x, y)


def gear(at: Plane) -> Tensor:
    """A wheel with eight teeth and a small hole."""
    radius = torch.hypot(at.u, at.v)
    teeth = 0.8 + 0.18 * (3 * (8 * torch.atan2(at.v, at.u)).sin()).tanh()
    return overlap(teeth - radius, radius - 0.28)


def crescent(at: Plane) -> Tensor:
    """A moon: a circle without another one that overlaps it."""
    return overlap(disc(at), torch.hypot(at.u - 0.5, at.v) - 0.75)


def cross(at: Plane) -> Tensor:
    """Two bars of equal length that cross in the middle."""
    return union(box(at, (0.0, 0.0), (0.98, 0.3)), box(at, (0.0, 0.0), (0.3, 0.98)))


def heart(at: Plane) -> Tensor:
    """A square on its corner with half a circle on each upper side."""
    half, v = 0.52, at.v - 0.12
    side = half / math.sqrt(2)
    diamond = half - (at.u.abs() + v.abs()) / math.sqrt(2)
    return union(diamond, half - torch.hypot(at.u.abs() - side, v + side))


def arrow(at: Plane) -> Tensor:
    """A head with a shaft."""
    head = overlap(at.u, (0.8 * (1 - at.u) - at.v.abs()) / math.hypot(1, 0.8))
    return union(head, box(at, (-0.4, 0.0), (0.55, 0.26)))


def letter_e(at: Plane) -> Tensor:
    """A spine with three bars."""
    bars = (box(at, (0.1, height), (0.6, 0.17)) for height in (-0.68, 0.0, 0.68))
    return union(box(at, (-0.4, 0.0), (0.2, 0.85)), *bars)


def letter_t(at: Plane) -> Tensor:
    """A bar on a post."""
    return union(box(at, (0.0, -0.6), (0.8, 0.24)), box(at, (0.0, 0.1), (0.25, 0.9)))


DRAWINGS: dict[str, Callable[[Plane], Tensor]] = {
    "disc": disc,
    "ring": ring,
    "square": square,
    "triangle": triangle,
    "star": star,
    "gear": gear,
    "crescent": crescent,
    "cross": cross,
    "heart": heart,
    "arrow": arrow,
    "letter-e": letter_e,
    "letter-t": letter_t,
}
SHAPES: tuple[str, ...] = tuple(DRAWINGS)


@lru_cache
def shape_areas() -> Float[Tensor, "shapes"]:
    """Area of every shape at radius 1, so that size can be drawn as area and tells no class."""
    steps = (torch.arange(250) + 0.5) / 100 - 1.25
    v, u = torch.meshgrid(steps, steps, indexing="ij")
    return torch.stack([(drawing(Plane(u, v)) > 0).float().mean() * 2.5**2 for drawing in DRAWINGS.values()])


# ---------------------------------------------------------------- paint


class Dice:
    """Uniform draws for a chunk of pictures, each [B, 1, 1], all from one generator."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.generator = count, torch.Generator().manual_seed(seed)

    def grid(self, *shape: int) -> Tensor:
        """[B, *shape] in [0, 1)."""
        return torch.rand(self.count, *shape, generator=self.generator)

    def __call__(self, low: float, high: float) -> Tensor:
        """[B, 1, 1] in [low, high)."""
        return low + (high - low) * self.grid(1, 1)


def rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """HSV [B, 1, 1] to RGB [B, 3, 1, 1]; hue counts turns."""
    sector = (torch.tensor([5.0, 3.0, 1.0]).view(3, 1, 1) + 6 * hue[:, None]) % 6
    return value[:, None] * (1 - saturation[:, None] * torch.minimum(sector, 4 - sector).clamp(0, 1))


def smooth_noise(dice: Dice, cells: int, size: int) -> Tensor:
    """[B, S, S] in about [-1, 1]: random values on a coarse grid, interpolated."""
    coarse = 2 * dice.grid(1, cells, cells) - 1
    return F.interpolate(coarse, size=(size, size), mode="bilinear", align_corners=False)[:, 0]


def texture(dice: Dice, at: Plane) -> Tensor:
    """[B, S, S] in [0, 1]: stripes, checks or smooth blotches of random width, angle and sharpness."""
    turned = at.turned(dice(0.0, math.pi))
    pitch = 2 * math.pi * dice(2.0, 6.0)
    stripes = (pitch * turned.u + dice(0.0, 6.3)).sin()
    checks = 1.5 * stripes * (pitch * turned.v + dice(0.0, 6.3)).sin()
    blotches = 1.5 * smooth_noise(dice, 6, at.u.shape[-1])
    kind = dice(0.0, 3.0)
    pattern = torch.where(kind < 1, stripes, torch.where(kind < 2, checks, blotches))
    return 0.5 + 0.5 * (dice(1.0, 4.0) * pattern).tanh()


def paint(below: Tensor, colour: Tensor, cover: Tensor) -> Tensor:
    """`colour` [B, 3, ...] over a picture [B, 3, S, S] where `cover` [B, S, S] is 1."""
    return torch.lerp(below, colour.expand_as(below), cover[:, None])


def soften(inside: Tensor, radius: Tensor | float, size: int) -> Tensor:
    """Cover in [0, 1] of pixels whose distance to the edge is `inside * radius` picture sides."""
    return (0.5 + inside * radius * size).clamp(0, 1)


def draw_background(dice: Dice, at: Plane, hue: Tensor) -> Tensor:
    """[B, 3, S, S]: two tones in a texture, with blobs, bars and chips, none of them a class."""
    size = at.u.shape[-1]
    tones = [rgb(hue + dice(-0.08, 0.08), dice(0.2, 0.7), dice(0.15, 0.7)) for _ in range(2)]
    scene = paint(tones[0].expand(-1, 3, size, size), tones[1], texture(dice, at))
    for _ in range(DISTRACTORS):
        local = Plane(at.u - dice(0.0, 1.0), at.v - dice(0.0, 1.0)).turned(dice(0.0, math.pi))
        long, wide, kind = dice(0.08, 0.2), dice(0.25, 0.6), dice(0.0, 3.0)
        u, v = local.u / long, local.v / (long * wide)
        blob = (1 - torch.hypot(u, v)) * wide
        chip = torch.minimum(blob, 0.6 * local.v / long)
        bar = torch.minimum(3 - u.abs(), (0.35 - v.abs()) * wide)
        inside = torch.where(kind < 1, blob, torch.where(kind < 2, chip, bar))
        colour = rgb(dice(0.0, 1.0), dice(0.2, 0.8), dice(0.2, 0.95))
        scene = paint(scene, colour, soften(inside, long, size) * dice(0.6, 1.0))
    return scene


def draw_object(
    dice: Dice, at: Plane, labels: Int[Tensor, "B"], hue: Tensor
) -> tuple[Float[Tensor, "B 3 S S"], Float[Tensor, "B S S"]]:
    """Colours of the object and how much of each pixel it covers."""
    size = at.u.shape[-1]
    areas = shape_areas()[labels].view(-1, 1, 1)
    radius = (dice(0.16, 0.32) / areas).sqrt().clamp(max=0.42)
    margin = 0.9 * radius
    local = Plane(*((axis - margin - (1 - 2 * margin) * dice(0.0, 1.0)) / radius for axis in at))
    # The stretch keeps the area, and with the mirror a flipped picture is as likely as the picture.
    stretch, mirror = dice(-0.12, 0.12).exp(), dice(-1.0, 1.0).sign()
    local = local.turned(dice(-TILT, TILT))
    local = Plane(local.u * stretch * mirror, local.v / stretch)
    inside = torch.empty_like(local.u)
    for label in labels.unique().tolist():
        chosen = labels == label
        inside[chosen] = DRAWINGS[SHAPES[label]](Plane(local.u[chosen], local.v[chosen]))
    saturation, value = dice(0.2, 0.8), dice(0.55, 1.0)
    tones = [rgb(hue + dice(-0.06, 0.06), saturation, value * dice(0.85, 1.0)) for _ in range(2)]
    colour = torch.lerp(tones[0], tones[1], texture(dice, at)[:, None])
    slope = Plane(at.u - 0.5, at.v - 0.5).turned(dice(0.0, 2 * math.pi)).u
    return colour * (1 + 0.35 * slope[:, None]), soften(inside, radius, size)


def draw_chunk(size: int, classes: int, seed: int) -> Drawn:
    """`ROUNDS` pictures of every class; each run of `classes` pictures shows every class once."""
    dice = Dice(ROUNDS * classes, seed)
    labels = torch.rand(ROUNDS, classes, generator=dice.generator).argsort(dim=1).flatten()
    axis = (torch.arange(size) + 0.5) / size
    shape = (len(labels), size, size)
    at = Plane(axis.expand(shape), axis[:, None].expand(shape))
    hue = dice(0.0, 1.0)
    background = draw_background(dice, at, hue)
    colour, cover = draw_object(dice, at, labels, hue + dice(0.15, 0.85))
    scene = paint(background, colour, cover)
    scene = scene + 0.02 * torch.randn(scene.shape, generator=dice.generator)
    images = (255 * scene.clamp(0, 1)).round().to(torch.uint8)
    return Drawn(images, labels, cover[:, None] > 0.5)


def draw_pictures(count: int, *, size: int = 32, classes: int = len(SHAPES), seed: int = 0) -> Drawn:
    """The first `count` pictures of the endless dataset `seed`, the classes balanced within one.

    The same seed gives the same pictures, and the first pictures do not depend on `count`. Take train
    and test pictures from different seeds.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}.")
    if not 2 <= classes <= len(SHAPES):
        raise ValueError(f"classes must lie in [2, {len(SHAPES)}], got {classes}.")
    if size < 8:
        raise ValueError(f"size must be at least 8 pixels, got {size}.")
    # torch's CPU generator reads 32 bits of a seed; the odd factor keeps the chunks of all seeds apart.
    seeds = ((seed * 1_000_003 + k) % 2**32 for k in range(-(-count // (ROUNDS * classes))))
    chunks = [draw_chunk(size, classes, each) for each in seeds]
    return Drawn(*(torch.cat(parts)[:count] for parts in zip(*chunks, strict=True)))
