"""TransMix (arXiv 2111.09833): CutMix pictures whose labels follow what the network attends to.

    lam_i = w * area + (1 - w) * sum(A_i M) / sum(A_i)

M is the box mask (1 keeps the first image), shrunk to the token grid by nearest sampling; A_i is the class
token's attention to the patches of mixed image i in the last block, mean over heads, before attention
dropout. It comes from the same forward pass that gives the loss and carries no gradient. In a network without
class token (Swin) A_i is the attention that each position receives, where the paper adds a class token.

Checked against Beckschen/TransMix. The paper's text weighs by attention alone (w = 0); the code, and so our
default, uses w = 1/2. The code mixes some batches by mixup instead:
`Switch(policies=(MixUp(alpha=0.8), TransMix()))`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.checks import check_share
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing
from samix.core.shapes import AttentionMap, Images, Mask, PerSample, RandomSource
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.cutmix import cutmix_mask
from samix.nn.attention import watching_attention


def covered_attention(mask: Mask, attention: AttentionMap) -> PerSample:
    """sum(A (1 - M)) / sum(A): the share of each image's attention that falls on the partner's box."""
    box = 1 - F.interpolate(mask.float(), size=attention.shape[-2:], mode="nearest")[:, 0]  # [1 or B, h, w]
    share = (attention * box).sum(dim=(1, 2)) / attention.sum(dim=(1, 2))
    # A picture without numbers has no attention, and its label is weighed by the area.
    return torch.where(share.isfinite(), share, box.mean(dim=(1, 2)))


@dataclass(frozen=True, kw_only=True)
class TransMix(Policy):
    """CutMix for transformers; label weights from their attention to the mixed images."""

    area_weight: float = 0.5
    """w: how much the area of the box counts for the label; the rest is attention (paper's text: 0)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "mixup", "area_weight")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask of CutMix: one box per lam."""
        return cutmix_mask(x.shape[-2:], pairing.lam, generator).to(x)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Works only with area_weight = 1 (CutMix): without the network there is no attention."""
        if self.area_weight < 1:
            raise ValueError(
                "TransMix weighs labels by the network's attention to the mixed images, so it cannot mix "
                "without the network. Call policy.run(network, x, pairing) or "
                "samix.Mix(...).forward(model, x, y), or set area_weight=1 for labels by area alone."
            )
        return super().mix(x, pairing, hints, generator)

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """The images of CutMix, with labels weighed by area."""
        return super().mix(x, pairing, hints, generator)

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """Reads the attention that weighs the labels from the forward pass that gives the outputs."""
        if self.area_weight == 1:
            return super().mix_inside(network, x, pairing, hints, generator)
        mask = self.mask(x, pairing, hints, generator)
        x_mix = blend_pairs(x, pairing.index, mask)
        with watching_attention(network) as seen:
            outputs = network(x_mix)

        # Computed from the covered part, so that an image without a box weighs exactly 1.
        area, attention = 1 - mean_of(mask), covered_attention(mask, seen[-1])
        lam = 1 - self.area_weight * area - (1 - self.area_weight) * attention
        return outputs, Mixed(x_mix, mask, Pairing(lam, pairing.index))
