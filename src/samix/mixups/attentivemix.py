"""AttentiveMix (arXiv 2003.13048): the cells that a network finds strongest in x_i, pasted onto x_j.

This is AttentiveMix+ of OpenMixup: of the h w cells of the channel mean of the network's last maps, the
k = min(max(1, floor(h w lam)), h w) largest show x_i and all others x_j; lam ~ Beta(2, 2), and the label
weight is the mean of the mask. The paper fixes k = 6 of 7 x 7 cells.

Differs from OpenMixup: the maps are taken at the resolution they have (ResNet-18 on 32 px: 8 x 8 cells of
stage 3), not from a second, ImageNet-pretrained network on pictures enlarged to 224 px. They come from
whatever supplies `hints.maps`: the network that is being trained, in eval mode and without gradient, or in
`samix.Mix` the layer of any model you name.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.core.shapes import AttentionMap, Images, Lam, Maps, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy


def strongest_cells(strength: AttentionMap, lam: Lam) -> AttentionMap:
    """1 at the floor(h w lam) largest cells of a map, at least one; of equals the first in raster order."""
    cells = strength.shape[1] * strength.shape[2]
    # In float64, which Apple's GPUs do not have: float32 would round h w lam up to the next cell.
    chosen = (cells * lam.detach().cpu().double()).long().clamp(1, cells).to(strength.device)
    order = strength.flatten(1).argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    return (rank < chosen[:, None]).float().view_as(strength)


def attentivemix_mask(maps: Maps, lam: Lam, size: Size) -> Mask:
    """The strongest cells of the channel mean, each enlarged to its share of an image of that size."""
    cells = strongest_cells(maps.detach().float().mean(dim=1), lam)
    return F.interpolate(cells[:, None], size=size, mode="nearest")


@dataclass(frozen=True, kw_only=True)
class AttentiveMix(Policy):
    """The strongest cells of the first image, pasted onto its partner."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""

    needs: ClassVar[tuple[str, ...]] = ("maps",)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One mask per image; no randomness of its own."""
        assert hints.maps is not None  # `checked` has seen to it
        return attentivemix_mask(hints.maps, pairing.lam.to(x.device), x.shape[-2:]).to(x)
