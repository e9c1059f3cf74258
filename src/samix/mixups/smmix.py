"""SMMix (arXiv 2212.12977): what the network looks at most in the partner covers what it looks at least.

    x_mix = M x_i + (1 - M) T(x_j),     lam = mean(M)

tau ~ U(.25, .75) is the side of a box in units of the image's, cut to whole tokens. Of all boxes of that
size, M is 0 inside the one to which the class token of x_i attends least, and T moves the one to which that
of x_j attends most to its place. Attention is that of the last block to the clean images, mean over heads.

Checked against ChenMnZ/SMMix, which draws the side among whole tokens, reverses the batch and mixes every
other batch by Mixup: `Switch(policies=(MixUp(), SMMix()))`. This is its mixing. The paper has two further
losses, of the mean token of either part and of agreement with the predictions for the clean images; they are
not here.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Mixed, blend, in_format_of
from samix.core.pairing import Pairing
from samix.core.shapes import AttentionMap, Images, Lam, RandomSource, Size
from samix.mixups.base import Hints, mean_of
from samix.mixups.regions import Interval, Region, stretch_into
from samix.mixups.resizemix import ResizeMix

Sides = Int[Tensor, "B 2"]


def token_sides(lam: Lam, grid: Size) -> Sides:
    """Height and width in tokens of boxes over about 1 - lam of the grid: floor(h tau), floor(w tau)."""
    tau = (1 - lam.detach().cpu().double()).sqrt()[:, None]
    return (tau * torch.tensor(grid) + 1e-4).long()  # float32 may fall short of a whole token


def find_boxes(attention: AttentionMap, sides: Sides, *, most: bool) -> Region:
    """Of all boxes with these sides, the first of those that gather most, or least, attention."""
    corner = torch.zeros_like(sides)
    for side in sides.unique(dim=0):
        chosen = (sides == side).all(dim=1)
        if side.min() > 0:
            sums = F.avg_pool2d(attention[chosen.to(attention.device), None], side.tolist(), stride=1)
            best = (sums if most else -sums).flatten(1).argmax(dim=1).cpu()
            corner[chosen] = torch.stack([best // sums.shape[3], best % sums.shape[3]], dim=1)
    return Region(*(Interval(corner[:, axis], sides[:, axis]) for axis in (0, 1)))


def to_pixels(tokens: Region, grid: Size, size: Size) -> Region:
    """Boxes of tokens as boxes of pixels."""

    def enlarge(interval: Interval, count: int, pixels: int) -> Interval:
        start, end = (edge * pixels // count for edge in (interval.start, interval.start + interval.length))
        return Interval(start, end - start)

    return Region(enlarge(tokens.rows, grid[0], size[0]), enlarge(tokens.columns, grid[1], size[1]))


@dataclass(frozen=True, kw_only=True)
class SMMix(ResizeMix):
    """Pastes the most attended box of the partner onto the least attended one of the first image."""

    scale_min: float = 0.25
    """Smallest side of the box, in units of the image's."""
    scale_max: float = 0.75
    """Largest side of the box, in units of the image's."""

    needs: ClassVar[tuple[str, ...]] = ("attention",)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Finds both boxes and pastes; targets per pixel are moved alike. Draws nothing."""
        assert hints.attention is not None  # declared in `needs`
        attention, index, size = hints.attention.detach().float(), pairing.index, x.shape[-2:]
        grid = attention.shape[-2:]
        sides = token_sides(pairing.lam.expand(len(x)), grid)
        target, source = (
            to_pixels(find_boxes(seen, sides, most=most), grid, size).to(x.device)
            for seen, most in ((attention, False), (attention[index], True))
        )
        mask = (~target.inside(size))[:, None].to(x)

        def sources(planes: Tensor) -> tuple[Tensor, Tensor]:
            return planes, in_format_of(planes, stretch_into(planes[index], target, source))

        return Mixed(blend(*sources(x), mask), mask, Pairing(mean_of(mask), index), sources=sources)
