"""SaliencyMix (arXiv 2006.01791): CutMix whose box is centred on the partner's most salient pixel.

Box sides, clipping and label weight are those of CutMix: floor(H sqrt(1 - lam)) and floor(W sqrt(1 - lam)),
cut off at the border, and the uncovered area. The centre is the maximum of the partner's fine-grained
saliency, the first in raster order of several (the brightest and the darkest outlier both reach 255).

Differs from the original code in two ways. It takes one centre for the whole batch, from the partner of the
first image; here every partner has its own, unless `one_box=True`. It also hands normalised floats to a
routine that reads bytes, so its centres are noise (at 224 px near the top edge); here pixels become 8 bits.
"""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Shaped
from torch import Tensor

from samix.core.images import to_bytes
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource
from samix.mixups.base import Hints, Policy
from samix.mixups.cutmix import box_around, box_mask
from samix.mixups.saliency import fine_grained_saliency


def peak_mask(saliency: Shaped[Tensor, "N H W"], lam: Lam) -> Mask:
    """1 outside a box of area about (1 - lam) H W around the first maximum, 0 inside.

    One box per saliency map or per lam, whichever are more.
    """
    size = saliency.shape[-2:]
    peak = saliency.flatten(1).argmax(dim=1).cpu()  # the first of equals
    return box_mask(size, box_around(size, peak // size[1], peak % size[1], lam))


@dataclass(frozen=True, kw_only=True)
class SaliencyMix(Policy):
    """A box of the partner around its most salient pixel replaces the same box of the first image."""

    one_box: bool = False
    """Centre every box of the batch where the partner of the first image is most salient (original code)."""

    needs: ClassVar[tuple[str, ...]] = ("pixels",)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One box per pair; no randomness of its own."""
        assert hints.pixels is not None  # `checked` has seen to it
        partners = pairing.index[:1] if self.one_box else pairing.index
        return peak_mask(fine_grained_saliency(to_bytes(hints.pixels[partners])), pairing.lam).to(x)
