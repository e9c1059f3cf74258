"""AlignMix (arXiv 2103.15375): one map of a pair takes on the geometry of the other, then both are blended.

With A_i, A_j the last maps before pooling as r vectors of C channels, P the transport plan between them (see
`sinkhorn`) and R = r P, a coin per batch decides between

    lam A_i + (1 - lam) A_j R^T      the partner is laid out like the first image
    lam A_i R + (1 - lam) A_j        the first image is laid out like the partner

No gradient flows through P. Label weight: lam. A first coin gives the share `input_share` of the batches
plain Mixup of the images instead. Checked against shashankvkt/AlignMixup_CVPR22.

Differs from the original: lam = 1 leaves a map untouched in both directions; where lam is drawn per pair, so
is the direction; no image is its own partner. As there, rows of R that do not sum to 1 are left so. OpenMixup
has no first coin: `input_share=0`.

Maps are [B, C, h, w]; layers that give [B, h, w, C] (Swin) cannot be told from them and do not belong here.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, RandomSource
from samix.mixups.base import Hints
from samix.mixups.latent import INPUT, LatentMixup, LayerOutput, MixedMaps
from samix.mixups.mixup import constant_mask
from samix.mixups.sinkhorn import Vectors, squared_distances, transport_plan


def align(first: Vectors, second: Vectors, like_first: Bool[Tensor, "#B"]) -> tuple[Vectors, Vectors]:
    """Both sets of vectors, the second laid out like the first or the other way round."""
    plan = transport_plan(squared_distances(first.detach(), second.detach()))
    shares = (plan.shape[-1] * plan).to(first)  # columns sum to 1, rows nearly or not at all
    like_first = like_first[:, None, None]
    laid_first = torch.where(like_first, first, first @ shares)
    laid_second = torch.where(like_first, second @ shares.transpose(1, 2), second)
    return laid_first, laid_second


def align_and_blend(first: Vectors, second: Vectors, lam: Lam, like_first: Bool[Tensor, "#B"]) -> Vectors:
    """lam times the first set plus 1 - lam times the second, aligned; lam = 1 keeps the first as it is."""
    laid_first, laid_second = align(first, second, like_first)
    weight = lam.to(first).view(-1, 1, 1)
    return torch.where(weight == 1, first, weight * laid_first + (1 - weight) * laid_second)


def patch_side(height: int, width: int, positions: int = 256) -> int:
    """The smallest side of square patches that tile an image in at most so many positions, if one does."""
    common = math.gcd(height, width)
    fitting = [d for d in range(1, common + 1) if common % d == 0 and height * width <= positions * d * d]
    return min(fitting, default=common)


@dataclass(frozen=True, kw_only=True)
class AlignMix(LatentMixup):
    """Mixup of feature maps whose positions were matched by optimal transport."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""
    layers: tuple[str, ...] = ("layer4",)
    """Names of submodules that give the last map before pooling, one drawn per batch."""
    input_share: float = 0.5
    """Share of the batches that get Mixup of the images instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.input_share <= 1:
            raise ValueError(f"mixup.input_share must lie in [0, 1], got {self.input_share}.")

    def draw_layer(self, generator: RandomSource = None) -> str:
        """ "input" for its share of the batches, else one of `layers`."""
        if float(torch.rand(1, generator=generator)) < self.input_share:
            return INPUT
        return super().draw_layer(generator)

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """The blend of the aligned maps; one coin for the direction per lam."""
        first = self.checked_map(maps).flatten(2)  # [B, C, r]
        like_first = (torch.rand(len(pairing.lam), generator=generator) < 0.5).to(maps.device)
        mixed = align_and_blend(first, first[pairing.index], pairing.lam, like_first)
        return MixedMaps(mixed.view_as(maps), pairing.lam)

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Patches of the images aligned and blended: as many positions as a layer's map would have."""
        side = patch_side(*x.shape[-2:])
        patches, lam = self.mix_maps(F.pixel_unshuffle(x, side), pairing, generator)
        mask = constant_mask(x.shape[-2:], lam.to(x))
        return Mixed(F.pixel_shuffle(patches, side), mask, Pairing(lam, pairing.index))
