"""AlignMix (arXiv 2103.15375): one map of a pair is rearranged like the other, then both are blended.

A_i, A_j are the last maps before pooling, as r vectors of C channels; P is the transport plan between them
(see `sinkhorn`), R = r P. One of two directions is drawn per batch, with probability 1/2 each:

    lam A_i + (1 - lam) A_j R^T      the partner is rearranged like the first image
    lam A_i R + (1 - lam) A_j        the first image is rearranged like the partner

No gradient flows through P. Label weight: lam. A share `input_share` of the batches gets plain Mixup of the
images instead (OpenMixup: 0). Checked against shashankvkt/AlignMixup_CVPR22.

Maps must be [B, C, h, w]. Maps [B, h, w, C] (Swin) look the same to the policy and would be mixed wrongly.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_share
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, RandomSource
from samix.mixups.base import Hints
from samix.mixups.latent import INPUT, LatentMixup, LayerOutput, MixedMaps
from samix.mixups.mixup import constant_mask
from samix.mixups.sinkhorn import Vectors, squared_distances, transport_plan


def align(first: Vectors, second: Vectors, like_first: Bool[Tensor, "#B"]) -> tuple[Vectors, Vectors]:
    """Both sets of vectors; the second is rearranged like the first, or the first like the second."""
    plan = transport_plan(squared_distances(first.detach(), second.detach()))
    shares = (plan.shape[-1] * plan).to(first)  # columns sum to 1, rows only if the iteration converged
    like_first = like_first[:, None, None]
    laid_first = torch.where(like_first, first, first @ shares)
    laid_second = torch.where(like_first, second @ shares.transpose(1, 2), second)
    return laid_first, laid_second


def align_and_blend(first: Vectors, second: Vectors, lam: Lam, like_first: Bool[Tensor, "#B"]) -> Vectors:
    """Aligns both sets and returns lam first + (1 - lam) second; lam = 1 keeps the first as it is."""
    laid_first, laid_second = align(first, second, like_first)
    weight = lam.to(first).view(-1, 1, 1)
    return torch.where(weight == 1, first, weight * laid_first + (1 - weight) * laid_second)


def patch_side(height: int, width: int, positions: int = 256) -> int:
    """The smallest side of square patches that tile an image in at most `positions` patches.

    If there is none, the side of the largest patches that tile it.
    """
    common = math.gcd(height, width)
    fitting = [d for d in range(1, common + 1) if common % d == 0 and height * width <= positions * d * d]
    return min(fitting, default=common)


@dataclass(frozen=True, kw_only=True)
class AlignMix(LatentMixup):
    """Mixup of feature maps after their positions were matched by optimal transport."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""
    layers: tuple[str, ...] = ("layer4",)
    """Names of submodules that give the last map before pooling, one drawn per batch."""
    input_share: float = 0.5
    """Share of the batches that get Mixup of the images instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "mixup", "input_share")

    def draw_layer(self, generator: RandomSource = None) -> str:
        """Draws "input" with probability `input_share`, otherwise one of `layers`."""
        if float(torch.rand(1, generator=generator)) < self.input_share:
            return INPUT
        return super().draw_layer(generator)

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """Aligns and blends the maps; one direction is drawn per lam."""
        first = self.check_map(maps).flatten(2)  # [B, C, r]
        like_first = (torch.rand(len(pairing.lam), generator=generator) < 0.5).to(maps.device)
        mixed = align_and_blend(first, first[pairing.index], pairing.lam, like_first)
        return MixedMaps(mixed.view_as(maps), pairing.lam)

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Aligns and blends patches of the images, about as many as a layer's map has positions."""
        side = patch_side(*x.shape[-2:])
        patches, lam = self.mix_maps(F.pixel_unshuffle(x, side), pairing, generator)
        mask = constant_mask(x.shape[-2:], lam.to(x))
        return Mixed(F.pixel_shuffle(patches, side), mask, Pairing(lam, pairing.index))
