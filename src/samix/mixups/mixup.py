"""Mixup (arXiv 1710.09412): x_mix = lam x_i + (1 - lam) x_j, the same lam at every pixel."""

from dataclasses import dataclass

from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy


def constant_mask(size: Size, lam: Lam) -> Mask:
    """lam at every pixel, [len(lam), 1, H, W]; a view, nothing is copied."""
    return lam.view(-1, 1, 1, 1).expand(-1, 1, *size)


@dataclass(frozen=True, kw_only=True)
class MixUp(Policy):
    """Interpolates whole images linearly."""

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The constant mask lam; draws nothing."""
        return constant_mask(x.shape[-2:], pairing.lam.to(x))

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Blends by the mask; its mean is lam, which need not be summed up."""
        lam, index = pairing.lam.to(x), pairing.index
        mask = constant_mask(x.shape[-2:], lam)
        return Mixed(blend_pairs(x, index, mask), mask, Pairing(lam.float(), index))
