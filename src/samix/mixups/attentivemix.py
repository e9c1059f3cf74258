"""AttentiveMix (arXiv 2003.13048): the cells of x_i where a network responds most, pasted onto x_j.

This is AttentiveMix+ of OpenMixup: of the h w cells of the channel mean of the network's last maps, the
k = min(max(1, floor(h w lam)), h w) largest show x_i and all others x_j; lam ~ Beta(2, 2), and the label
weight is the mean of the mask. The paper fixes k = 6 of 7 x 7 cells.

The maps (`hints.maps`) come from the network that is being trained, or in `samix.Mix` from a layer that you
name; OpenMixup asks a second, pretrained network.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.core.shapes import AttentionMap, Images, Lam, Maps, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy


def strongest_cells(strength: AttentionMap, lam: Lam) -> AttentionMap:
    """1 at the floor(h w lam) largest cells of each map, at least one; ties go in reading order."""
    cells = strength.shape[1] * strength.shape[2]
    # float32 might round h w lam up to the next cell. On the CPU, because Apple's GPUs have no float64.
    chosen = (cells * lam.detach().cpu().double()).long().clamp(1, cells).to(strength.device)
    order = strength.flatten(1).argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    return (rank < chosen[:, None]).float().view_as(strength)


def attentivemix_mask(maps: Maps, lam: Lam, size: Size) -> Mask:
    """1 at the strongest cells of the channel mean, enlarged to images of this size."""
    cells = strongest_cells(maps.detach().float().mean(dim=1), lam)
    return F.interpolate(cells[:, None], size=size, mode="nearest")


@dataclass(frozen=True, kw_only=True)
class AttentiveMix(Policy):
    """The strongest cells of the first image, pasted onto its partner."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""

    needs: ClassVar[tuple[str, ...]] = ("maps",)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One mask per image; draws nothing."""
        assert hints.maps is not None  # declared in `needs`
        return attentivemix_mask(hints.maps, pairing.lam.to(x.device), x.shape[-2:]).to(x)
