"""SaliencyMix (arXiv 2006.01791): CutMix whose box is centred on the partner's most salient pixel.

The sides of the box, its clipping and the label weight are those of CutMix. The centre is the maximum of the
partner's fine-grained saliency (see `saliency`), the first one in reading order.

The original code uses one centre for the whole batch (`one_box=True`), and computes saliency of normalised
floats as if they were bytes, so its centres are noise. Here every partner has its own, from 8-bit pixels.
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

    There are as many boxes as saliency maps or lams, whichever number is larger.
    """
    size = saliency.shape[-2:]
    peak = saliency.flatten(1).argmax(dim=1)  # the first of equals
    return box_mask(size, box_around(size, peak // size[1], peak % size[1], lam))


@dataclass(frozen=True, kw_only=True)
class SaliencyMix(Policy):
    """A box of the partner around its most salient pixel replaces the same box of the first image."""

    one_box: bool = False
    """Centre every box of the batch on the peak of the first image's partner (original code)."""

    needs: ClassVar[tuple[str, ...]] = ("pixels",)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One box per pair; draws nothing."""
        assert hints.pixels is not None  # declared in `needs`
        partners = pairing.index[:1] if self.one_box else pairing.index
        return peak_mask(fine_grained_saliency(to_bytes(hints.pixels[partners])), pairing.lam).to(x)
