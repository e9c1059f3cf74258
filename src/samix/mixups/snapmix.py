"""SnapMix (arXiv 2012.04846): a box of the partner, stretched into a box of another size; labels weigh what
of both objects is seen.

    x_mix = M x_i + (1 - M) T(x_j)
    a = 1 - sum of S_i over the box B_i,     b = sum of S_j over the box B_j,     y = a y_i + b y_j

B_i and B_j are two of CutMix's boxes, for lam and for a second lam of the same distribution; M is 0 inside
B_i, and T stretches what B_j shows to B_i (bilinear, corners on corners). S is the class activation map of an
image for its own label, enlarged to the image (bilinear), less its minimum and divided by its sum. If either
box is empty, the image stays as it is.

Checked against Shaoli-Huang/SnapMix. There a and b need not sum to 1 (`normalized=False`), and a pair of one
class counts a + b twice. Its networks end in a linear classifier of pooled maps; ours may end otherwise.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Mixed, blend, in_format_of, pair_parents
from samix.core.pairing import Pairing, draw_lam
from samix.core.shapes import AttentionMap, Images, Lam, PerSample, RandomSource, Saliency, Size
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.cutmix import draw_box
from samix.mixups.regions import Interval, Region, stretch_into


def clip_interval(start: Tensor, end: Tensor, length: int) -> Interval:
    """The pixels [start, end), cut off at the border."""
    start = start.clamp(min=0)
    return Interval(start, end.clamp(max=length) - start)


def draw_region(size: Size, lam: Lam, generator: RandomSource = None) -> Region:
    """Draws one of CutMix's boxes per lam."""
    top, bottom, left, right = draw_box(size, lam, generator)
    region = Region(clip_interval(top, bottom, size[0]), clip_interval(left, right, size[1]))
    return region.to(lam.device)


def semantic_map(activation: AttentionMap, size: Size) -> Saliency:
    """S: the activation enlarged to the image, less its minimum, divided by its sum; flat if it is flat."""
    planes = activation.detach().float()[:, None]
    large = F.interpolate(planes, size=size, mode="bilinear", align_corners=False)[:, 0]
    large = large - large.amin(dim=(1, 2), keepdim=True)
    total = large.sum(dim=(1, 2), keepdim=True)
    return torch.where(total > 0, large / total, 1 / (size[0] * size[1]))


def share_inside(seen: Saliency, region: Region) -> PerSample:
    """The sum of each map inside its box."""
    return (seen * region.inside(seen.shape[-2:])).sum(dim=(1, 2))


@dataclass(frozen=True, kw_only=True)
class SnapMix(Policy):
    """Stretches a box of the partner into a box of the first image; labels follow class activation maps."""

    alpha: float = 5.0
    """lam ~ Beta(alpha, alpha), for both boxes."""
    normalized: bool = True
    """Divide the label weights a and b by their sum; False is the original."""

    needs: ClassVar[tuple[str, ...]] = ("activation",)
    masks_pairs: ClassVar[bool] = False  # labels are not the mask's mean, and objects may be enlarged

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Draws both boxes and pastes; targets per pixel are stretched alike."""
        assert hints.activation is not None  # declared in `needs`
        size, index, lam = x.shape[-2:], pairing.index, pairing.lam.to(x.device)
        target = draw_region(size, lam, generator)
        source = draw_region(size, draw_lam(len(lam), self.alpha, generator).to(lam), generator)
        pasted = target.filled & source.filled
        mask = (~(target.inside(size) & pasted[:, None, None]))[:, None].to(x)

        def sources(planes: Tensor) -> tuple[Tensor, Tensor]:
            return planes, in_format_of(planes, stretch_into(planes[index], target, source))

        seen = semantic_map(hints.activation, size)
        first = torch.where(pasted, 1 - share_inside(seen, target), 1)
        second = torch.where(pasted, share_inside(seen[index], source), 0)
        total = first + second
        # If nothing is seen of either, labels are weighed by area.
        weight = Pairing(torch.where(total > 0, first / total, mean_of(mask)), index)
        parents = None if self.normalized else pair_parents(index, first, second)
        return Mixed(blend(*sources(x), mask), mask, weight, parents, sources)
