"""ResizeMix (arXiv 2012.11101): the whole partner, made smaller, is pasted into the first image.

tau ~ U(.1, .8) is the patch's side in units of the image's, so lam = 1 - tau^2. The patch has floor(tau H) x
floor(tau W) pixels. Every sample has its own centre, uniform over the image; a patch that would cross the
border is moved inside, never cut off. Label weight: 1 - patch pixels / HW. Source: JayQine/ResizeMix.

The partner is shrunk by nearest sampling: row k of a patch of h rows shows row floor(k H / h). `from_alpha`
draws tau as OpenMixup does.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Shaped
from torch import Tensor

from samix.core.boxes import Patch
from samix.core.checks import check_fields
from samix.core.devices import send
from samix.core.mixed import Mixed, blend, in_format_of
from samix.core.pairing import Pairing, draw_lam
from samix.core.shapes import Images, Index, Lam, RandomSource, Size
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.regions import Interval


def draw_interval(size: int, length: Tensor, generator: RandomSource = None) -> Interval:
    """Draws intervals around uniform pixels and moves them inside the image."""
    centre = send(torch.randint(size, (len(length),), generator=generator), length.device)
    start = torch.minimum((centre - length // 2).clamp(min=0), size - length)
    return Interval(start, length)


def draw_box(size: Size, lam: Lam, generator: RandomSource = None) -> tuple[Interval, Interval]:
    """Draws one box per lam (its rows, its columns): floor(H sqrt(1 - lam)) by floor(W sqrt(1 - lam))."""
    tau = (1 - lam.detach()).sqrt()
    rows = draw_interval(size[0], (tau * size[0]).long(), generator)
    return rows, draw_interval(size[1], (tau * size[1]).long(), generator)


def shrink_into(planes: Tensor, index: Index, rows: Interval, columns: Interval) -> Shaped[Tensor, "B K H W"]:
    """The partner of each image [B, K, H, W], shrunk to its box; outside the box the values mean nothing."""
    height, width = planes.shape[-2:]
    source = rows.nearest(height)[:, :, None] * width + columns.nearest(width)[:, None]  # [B, H, W]
    source = source.flatten(1)[:, None].expand(-1, planes.shape[1], -1)
    shrunk = planes[index].flatten(2).gather(2, source).view(planes.shape)
    return in_format_of(planes, shrunk)


@dataclass(frozen=True, kw_only=True)
class ResizeMix(Policy):
    """The shrunk partner covers a box of the first image."""

    scale_min: float = 0.1
    """Smallest side of the patch, in units of the image's."""
    scale_max: float = 0.8
    """Largest side of the patch, in units of the image's."""
    from_alpha: bool = False
    """Draw tau ~ Beta(alpha, alpha), or uniformly if that leaves the range; False: alpha must stay 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.scale_min <= self.scale_max <= 1:
            raise ValueError(
                "mixup.scale_min and mixup.scale_max must satisfy 0 < scale_min <= scale_max <= 1, "
                f"got {self.scale_min} and {self.scale_max}."
            )
        rule = "must stay 1 where mixup.from_alpha is false, because tau is drawn uniformly then"
        check_fields(self, "mixup", ["alpha"], lambda value: value == 1 or self.from_alpha, rule)

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """Draws the side tau of the patch; lam = 1 - tau^2 is the share of the image that stays visible."""
        tau = torch.empty(count).uniform_(self.scale_min, self.scale_max, generator=generator)
        if self.from_alpha:
            drawn = draw_lam(count, self.alpha, generator)
            tau = torch.where((drawn >= self.scale_min) & (drawn <= self.scale_max), drawn, tau)
        return 1 - tau**2

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Pastes the shrunk partners; targets per pixel are shrunk and moved with them."""
        rows, columns = draw_box(x.shape[-2:], pairing.lam.expand(len(x)), generator)
        inside = rows.inside(x.shape[-2])[:, None, :, None] & columns.inside(x.shape[-1])[:, None, None]
        mask = (~inside).to(x)
        partner = partial(shrink_into, index=pairing.index, rows=rows, columns=columns)
        return Mixed(
            blend(x, partner(x), mask),
            mask,
            Pairing(mean_of(mask), pairing.index),
            sources=lambda planes: (planes, partner(planes)),
            patch=Patch(*rows, *columns),
        )
