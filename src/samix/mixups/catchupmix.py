"""Catch-Up Mix (AAAI 2024, arXiv 2401.13193): every filter shows the image for which it is the weaker one.

In the output of a random layer let r_c = |a_c| / sum_c |a_c| be the share of filter c in the lengths (l2)
of an image's maps. The floor(lam C) filters with the smallest r_c(x_i) - r_c(x_j) keep the map of x_i, all
others take that of x_j: what a few strong filters would have said is replaced, and weak ones learn. Label
weight: the share of filters that show x_i. The layers are the images, which get CutMix, and a ResNet's stem
and four stages.

No code of the authors could be found. The formula is the paper's as told in public summaries of it, and
that of the one public implementation (JohnR31N/AllTheMiXLA), whose label weight is lam before it is rounded
to filters.

Maps must be [B, C, h, w]. Maps [B, h, w, C] (Swin) look the same to the policy and would be mixed wrongly.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource
from samix.mixups.base import Hints
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.latent import INPUT, LatentMixup, LayerOutput, MixedMaps

ROUNDING = 1e-4
"""float32 may put lam C this far below a whole number."""


def filter_influence(maps: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C"]:
    """r: the length of each filter's map, divided by the sum over filters; equal where all maps are 0."""
    length = maps.detach().float().flatten(2).norm(dim=2) + torch.finfo(torch.float32).tiny
    return length / length.sum(dim=1, keepdim=True)


def count_filters(lam: Lam, channels: int) -> Tensor:
    """floor(lam C), how many filters keep the first image."""
    return (lam.detach().float() * channels + ROUNDING).floor()


def keep_weaker(difference: Float[Tensor, "B C"], count: Tensor) -> Float[Tensor, "B C"]:
    """1 at the `count` filters of each image with the smallest difference, 0 elsewhere; ties go in order."""
    rank = difference.argsort(dim=1, stable=True).argsort(dim=1)
    return (rank < count[:, None]).float()


@dataclass(frozen=True, kw_only=True)
class CatchUpMix(LatentMixup):
    """Weak filters of the first image beside those of its partner, at a random depth of the network."""

    layers: tuple[str, ...] = (INPUT, "maxpool", "layer1", "layer2", "layer3", "layer4")
    """Names of submodules, one drawn per batch: "input" is CutMix, "maxpool" ends timm's ResNet stem."""

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask of CutMix, for the layer "input"."""
        return cutmix_mask(x.shape[-2:], pairing.lam, generator).to(x)

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """Chooses between both maps filter by filter; draws nothing."""
        channels = self.check_map(maps).shape[1]
        influence, count = filter_influence(maps), count_filters(pairing.lam, channels)
        keep = keep_weaker(influence - influence[pairing.index], count.to(maps.device))
        mixed = torch.where(keep[:, :, None, None] > 0, maps, maps[pairing.index])
        return MixedMaps(mixed, count / channels)
