"""Where the names of points stand in a figure, so that none covers another name or a point."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

GAP = 7.0
"""Pixels between a point and its name."""
RINGS = 24
"""How far away a name may be pushed, in its own heights."""


class Box(NamedTuple):
    """A rectangle in pixels, from the lower left corner."""

    left: float
    bottom: float
    width: float
    height: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two have a point in common."""
        across = self.left < other.left + other.width and other.left < self.left + self.width
        along = self.bottom < other.bottom + other.height and other.bottom < self.bottom + self.height
        return across and along

    def within(self, other: "Box") -> bool:
        """Whether it lies in the other one."""
        return (
            other.left <= self.left
            and self.left + self.width <= other.left + other.width
            and other.bottom <= self.bottom
            and self.bottom + self.height <= other.bottom + other.height
        )


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    lines: Sequence[Box] = (),
) -> list[Box]:
    """A box for the name of every point: as near as it goes, in the frame, over no point, line or other box.

    Names are placed in their order. One without such a place may cover lines, and at last anything.
    """
    taken = [Box(x - GAP / 2, y - GAP / 2, GAP, GAP) for x, y in points]
    placed = []
    for point, size in zip(points, sizes, strict=True):
        choices = list(places(point, size))
        free = [box for box in choices if box.within(frame) and not any(map(box.overlaps, taken))]
        clear = (box for box in free if not any(map(box.overlaps, lines)))
        placed.append(next(clear, (free or choices)[0]))
        taken.append(placed[-1])
    return placed


def places(point: tuple[float, float], size: tuple[float, float]) -> Iterator[Box]:
    """Boxes around a point: right, left, above, below, then the same further up and down."""
    (x, y), (width, height) = point, size
    for step in range(RINGS):
        for sign in (1, -1) if step else (1,):
            shift = sign * step * height / 2
            yield Box(x + GAP, y + shift - height / 2, width, height)
            yield Box(x - GAP - width, y + shift - height / 2, width, height)
        away = GAP + step * height / 2
        for left in (x - width / 2, x + GAP / 2, x - GAP / 2 - width):
            yield Box(left, y + away, width, height)
            yield Box(left, y - away - height, width, height)
