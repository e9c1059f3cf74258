"""MixPro (ICLR 2023, arXiv 2304.12043): random cells of the partner; labels that learn to trust attention.

1. MaskMix: the image is cut into n x n cells, larger than a transformer's patches. ceil(n^2 lam) of them,
   drawn for every image, show x_i and the others x_j.
2. Progressive attention labels: with the area a_i of x_i, the class token's attention A to the patches of the
   mixed image (last block, mean over heads), the mask M on their grid and the network's probabilities p,

       y_a = a_i y_i + (1 - a_i) y_j,     t = cos(y_a, p),     lam_i = t sum(A M) / sum(A) + (1 - t) a_i

All from the forward pass that gives the loss. Checked against fistyee/MixPro (DeiT: 4 x 4 cells), which draws
Mixup or CutMix on the other half of the batches: `Switch(policies=(MixupCutMix(), MixPro()))`. There y_a has
label smoothing .1 within t, and t lets a gradient through; here labels are constants.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.checks import check_at_least
from samix.core.devices import send
from samix.core.mixed import Mixed, one_hot
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Logits, Mask, PerSample, RandomSource, SoftLabels
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.transmix import covered_attention
from samix.nn.attention import watching_attention
from samix.nn.conventions import as_logits

ROUNDING = 1e-4
"""float32 may put n^2 lam this far above a whole number."""


def draw_cells(cells: int, lam: Lam, batch: int, generator: RandomSource = None) -> Mask:
    """1 at ceil(n^2 lam) random cells of every image, 0 elsewhere: one grid per image."""
    order = torch.rand(batch, cells**2, generator=generator).argsort(dim=1).argsort(dim=1)
    count = (lam.detach().float() * cells**2 - ROUNDING).ceil()
    kept = send(order, lam.device) < count[:, None]
    return kept.float().view(batch, 1, cells, cells)


def trust(rows: SoftLabels, logits: Logits) -> PerSample:
    """t: the cosine between the labels by area and the network's probabilities."""
    return F.cosine_similarity(rows, logits.detach().float().softmax(dim=1), dim=1)


@dataclass(frozen=True, kw_only=True)
class MixPro(Policy):
    """Random cells for transformers with a class token; labels by area and, progressively, attention."""

    cells: int = 4
    """Cells per side; the network's patches per side should be a multiple."""

    needs: ClassVar[tuple[str, ...]] = ("labels",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, self, "mixup", "cells")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """Cells of their own for every image."""
        cells = draw_cells(self.cells, pairing.lam, len(x), generator)
        return F.interpolate(cells.to(x), size=x.shape[-2:], mode="nearest")

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Always raises an error: without the network there is no attention."""
        raise ValueError(
            "MixPro weighs labels by the network's attention to the mixed images, so it cannot mix without "
            "the network. Call policy.run(network, x, pairing, hints) or samix.Mix(...).forward(model, x, y)."
        )

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """The images, with labels weighed by area."""
        return super().mix(x, pairing, hints, generator)

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """Reads attention and probabilities from the forward pass that gives the outputs."""
        assert hints.labels is not None  # declared in `needs`
        by_area = super().mix(x, pairing, hints, generator)
        with watching_attention(network) as seen:
            outputs = network(by_area.x)
        logits = as_logits(outputs)
        trusted = trust(by_area.values(one_hot(hints.labels, logits.shape[1])), logits)
        area, attention = mean_of(by_area.mask), 1 - covered_attention(by_area.mask, seen[-1])
        lam = torch.where(trusted.isfinite(), trusted * attention + (1 - trusted) * area, area)
        # Where nothing is covered, rounding must not leave a trace of the partner.
        lam = torch.where(area < 1, lam.clamp(0, 1), 1.0)
        return outputs, by_area._replace(pairing=Pairing(lam, pairing.index))
