"""Inter-Intra (the paper's Inter-Intra*): CutMix for pairs with different labels, mixup for equal labels.

It is made for self-supervised training with pseudo labels (`ClusterMixing`) and is not in `MIXUPS`: it needs
one integer label per image, while the policies of that table also take soft labels.

The distribution of lam depends on the labels of a pair, which are not known when the pairing is drawn. So the
pairing's lam is for pairs with different labels; the lam for equal labels is drawn when the images are mixed.
If the pairing says lam = 1, pairs of both kinds stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import torch

from samix.core.checks import check_fields, check_words
from samix.core.pairing import Pairing, check_alpha, draw_lam
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.mixup import constant_mask

Part: TypeAlias = Literal["mixup", "cutmix"]
PARTS: dict[Part, Callable[[Size, Lam, RandomSource], Mask]] = {
    "mixup": lambda size, lam, generator: constant_mask(size, lam),
    "cutmix": cutmix_mask,
}
"""Masks by the name of the mixup."""


@dataclass(frozen=True, kw_only=True)
class InterIntra(Policy):
    """CutMix if the labels of a pair differ, mixup if they are equal; or either for both."""

    alpha: float = 1.0
    """Not used: alpha_inter and alpha_intra take its place."""
    alpha_inter: float = 2.0
    """lam ~ Beta(alpha_inter, alpha_inter) for different labels."""
    alpha_intra: float = 0.2
    """lam ~ Beta(alpha_intra, alpha_intra) for equal labels."""
    inter: Part = "cutmix"
    """What mixes pairs of different labels."""
    intra: Part = "mixup"
    """What mixes pairs of equal labels."""

    needs: ClassVar[tuple[str, ...]] = ("labels",)

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "must stay 1 (set alpha_inter and alpha_intra instead)"
        check_fields(self, "mixup", ["alpha"], lambda value: value == 1, rule)
        check_words(self, "mixup")
        for name in ("alpha_inter", "alpha_intra"):
            check_alpha(getattr(self, name), f"mixup.{name}")

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """Draws lam for pairs with different labels."""
        return draw_lam(count, self.alpha_inter, generator)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """A mask of either kind for each pair; one of each is drawn per lam."""
        size, labels = x.shape[-2:], hints.labels
        assert labels is not None  # declared in `needs`
        if labels.ndim != 1:
            raise ValueError(
                f"InterIntra needs one integer label per image, got labels of shape {list(labels.shape)}."
            )
        between = PARTS[self.inter](size, pairing.lam, generator).to(x)
        within = draw_lam(len(pairing.lam), self.alpha_intra, generator).to(pairing.lam)
        within = within.masked_fill(pairing.lam >= 1, 1.0)
        alike = labels == labels[pairing.index]
        inside = PARTS[self.intra](size, within, generator).to(x)
        return torch.where(alike.view(-1, 1, 1, 1), inside, between)
