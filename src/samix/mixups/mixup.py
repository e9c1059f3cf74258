"""Mixup (arXiv 1710.09412): x_mix = lam x_i + (1 - lam) x_j, the same lam at every pixel."""

from dataclasses import dataclass

from samix.mixups.base import Hints, Mixup
from samix.pairing import Pairing, as_image_weight
from samix.typing import Images, Lam, Mask, RandomSource


def constant_mask(size: tuple[int, int], lam: Lam) -> Mask:
    """lam at every pixel, [len(lam), 1, H, W] without copying."""
    return as_image_weight(lam).expand(-1, 1, *size)


@dataclass(frozen=True, kw_only=True)
class MixUp(Mixup):
    """Linear interpolation of whole images."""

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The constant mask lam; no randomness of its own."""
        return constant_mask((x.shape[-2], x.shape[-1]), pairing.lam.to(x))
