"""CutMix (arXiv 1905.04899): a random box of the partner, pasted at the same place.

Box sides are floor(H sqrt(1 - lam)) and floor(W sqrt(1 - lam)) around a uniform integer centre, cut off
at the border as in the original code, so the label weight is the uncovered area, not the drawn lam.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from samix.mixups.base import Hints, Mixup
from samix.pairing import Pairing
from samix.typing import Images, Lam, Mask


def outside_interval(length: int, centre: Tensor, side: Tensor) -> Tensor:
    """[N, length] booleans: True where a pixel lies outside [centre - side // 2, centre + side // 2)."""
    pixels = torch.arange(length)[None]
    half = (side // 2)[:, None]
    return (pixels < centre[:, None] - half) | (pixels >= centre[:, None] + half)


def cutmix_mask(size: tuple[int, int], lam: Lam, generator: torch.Generator | None = None) -> Mask:
    """1 outside a random box of area about (1 - lam) H W, 0 inside: one box per lam."""
    height, width = size
    cut = (1 - lam.detach().cpu().double()).sqrt()
    rows = torch.randint(height, (len(lam),), generator=generator)
    columns = torch.randint(width, (len(lam),), generator=generator)
    keep_rows = outside_interval(height, rows, (height * cut).long())
    keep_columns = outside_interval(width, columns, (width * cut).long())
    return (keep_rows[:, None, :, None] | keep_columns[:, None, None, :]).float()


@dataclass(frozen=True, kw_only=True)
class CutMix(Mixup):
    """A box of the partner replaces a box of the first image."""

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: torch.Generator | None) -> Mask:
        """One box per lam, on the device and in the dtype of the images."""
        return cutmix_mask((x.shape[-2], x.shape[-1]), pairing.lam, generator).to(x)
