"""Inter-Intra (the paper's Inter-Intra*): CutMix between images of different labels, mixup among alike ones.

For self-supervised training with pseudo labels (`ClusterMixing`), so it does not stand in `MIXUPS`: it takes
one integer label per image, where the policies of that table take soft labels too.

The distribution of lam depends on a pair's labels, which nobody knows when the pairing is drawn. So the
pairing's lam is that of pairs with different labels, and the other one is drawn when the images are mixed,
from the generator given there. Where the pairing says lam = 1, pairs of either kind stay as they are.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from samix.core.pairing import Pairing, check_alpha, draw_lam
from samix.core.shapes import Images, Lam, Mask, RandomSource
from samix.mixups.base import Hints, Policy
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.mixup import constant_mask


@dataclass(frozen=True, kw_only=True)
class InterIntra(Policy):
    """A box of the partner if its label is another one, else a blend."""

    alpha: float = 1.0
    """Without effect: alpha_inter and alpha_intra take its place."""
    alpha_inter: float = 2.0
    """lam ~ Beta(alpha_inter, alpha_inter) between labels: CutMix."""
    alpha_intra: float = 0.2
    """lam ~ Beta(alpha_intra, alpha_intra) within a label: mixup."""

    needs: ClassVar[tuple[str, ...]] = ("labels",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha != 1:
            raise ValueError(
                f"mixup.alpha has no effect here, got {self.alpha}: set alpha_inter and alpha_intra."
            )
        for name in ("alpha_inter", "alpha_intra"):
            check_alpha(getattr(self, name), f"mixup.{name}")

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """lam between labels."""
        return draw_lam(count, self.alpha_inter, generator)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """A box or a constant for each pair: as many boxes and constants as the pairing has lam."""
        size, labels = x.shape[-2:], hints.labels
        assert labels is not None  # declared in `needs`
        if labels.ndim != 1:
            raise ValueError(
                f"InterIntra needs one integer label per image, got labels of shape {list(labels.shape)}."
            )
        boxes = cutmix_mask(size, pairing.lam, generator).to(x)
        within = draw_lam(len(pairing.lam), self.alpha_intra, generator).to(pairing.lam)
        within = within.masked_fill(pairing.lam >= 1, 1.0)
        alike = labels == labels[pairing.index]
        return torch.where(alike.view(-1, 1, 1, 1), constant_mask(size, within.to(x)), boxes)
