"""Boxes as intervals of rows and columns, and what one box shows, stretched into another."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from samix.core.shapes import Size

Planes = Shaped[Tensor, "B K H W"]


class Interval(NamedTuple):
    """The pixels [start, start + length) along one axis, for every sample."""

    start: Int[Tensor, "B"]
    length: Int[Tensor, "B"]

    def offset(self, size: int) -> Int[Tensor, "B _"]:
        """The position of each pixel of the axis, counted from the start of the interval."""
        return torch.arange(size, device=self.start.device)[None] - self.start[:, None]

    def inside(self, size: int) -> Bool[Tensor, "B _"]:
        """True at the pixels of the interval."""
        return (self.offset(size) >= 0) & (self.offset(size) < self.length[:, None])

    def nearest(self, size: int) -> Int[Tensor, "B _"]:
        """Which pixel of the whole axis each pixel of the interval shows; any pixel outside of it."""
        length = self.length.clamp(min=1)[:, None]  # an empty interval shows nothing
        return (self.offset(size) * size // length).clamp(0, size - 1)


class Region(NamedTuple):
    """Boxes, one per lam."""

    rows: Interval
    columns: Interval

    def inside(self, size: Size) -> Bool[Tensor, "N H W"]:
        """True at the pixels of each box."""
        return self.rows.inside(size[0])[:, :, None] & self.columns.inside(size[1])[:, None]

    def to(self, device: torch.device) -> "Region":
        """The boxes on a device."""
        return Region(*(Interval(start.to(device), length.to(device)) for start, length in self))

    @property
    def filled(self) -> Bool[Tensor, "N"]:
        """Whether each box has a pixel."""
        return (self.rows.length > 0) & (self.columns.length > 0)


def stretched(target: Interval, source: Interval, size: int) -> Float[Tensor, "N _"]:
    """Where each pixel of the target reads in the source: first on first, last on last; any place outside."""
    step = (source.length - 1) / (target.length - 1).clamp(min=1)
    place = target.offset(size) * step[:, None]
    return source.start[:, None] + place.clamp(min=0).minimum((source.length - 1).clamp(min=0)[:, None])


def read_along(planes: Planes, position: Float[Tensor, "N _"], dim: int) -> Planes:
    """Planes read at positions along rows (dim 2) or columns (dim 3): linear for floats, else nearest."""
    shape = [len(position), 1, 1, 1]
    shape[dim] = planes.shape[dim]

    def gather(line: Tensor) -> Tensor:
        line = line.long().clamp(0, planes.shape[dim] - 1)  # an empty box may name pixels outside
        return planes.gather(dim, line.view(shape).expand_as(planes))

    if not planes.is_floating_point():
        return gather(position.round())
    low = position.floor()
    return torch.lerp(gather(low), gather(low + 1), (position - low).view(shape).to(planes))


def stretch_into(planes: Planes, target: Region, source: Region) -> Planes:
    """What the source box of each plane shows, stretched to the target box; outside of it without meaning."""
    for dim, (into, out_of) in enumerate(zip(target, source, strict=True), start=2):
        planes = read_along(planes, stretched(into, out_of, planes.shape[dim]), dim)
    return planes
