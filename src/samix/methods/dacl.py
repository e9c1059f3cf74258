"""DACL (arXiv 2011.04419): mixup as noise. Both views are mixed a little, and the loss ignores it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from samix.methods.base import Losses
from samix.methods.selfsup import Around, SelfSupervised, Views, views_of
from samix.mixups.mixed import Mixed
from samix.mixups.mixup import MixUp
from samix.pairing import Pairing, draw_derangement
from samix.typing import Images, Index, RandomSource


@dataclass(frozen=True, kw_only=True)
class DACLConfig:
    """How much of another image is added."""

    alpha: float = 0.9
    """lam ~ U(alpha, 1): the smallest share of the own image."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise ValueError(f"mixup.alpha must lie in [0, 1) for DACL, got {self.alpha}.")


def draw_noise(
    batch: int, alpha: float, generator: RandomSource = None, device: torch.device | str | None = None
) -> Pairing:
    """lam ~ U(alpha, 1) for every image, and another image of the batch as its noise."""
    lam = alpha + (1 - alpha) * torch.rand(batch, generator=generator)
    return Pairing(lam.to(device), draw_derangement(batch, generator).to(device))


class DACL(Around):
    """The method's own loss on views x' = lam x + (1 - lam) x~; lam weighs nothing else.

    Each view has its own lam and its own partners. Targets and keys come from the noisy views too.
    """

    def __init__(self, method: SelfSupervised, config: DACLConfig | None = None) -> None:
        super().__init__(method)
        self.config = config or DACLConfig()

    def forward(self, x: Views, index: Index, progress: float = 0.0) -> Losses:
        """The method's loss on two noisy views; the lam reported is the first view's."""
        first, second = (self.disturb(view) for view in views_of(x, index))
        losses = self.method(torch.cat([first.x, second.x]), index, progress)
        return losses._replace(lam=first.pairing.lam)

    def disturb(self, view: Images) -> Mixed:
        """One view, every image with a little of another one."""
        return MixUp()(view, draw_noise(len(view), self.config.alpha, device=view.device))

    def picture(self, x: Images, y: Tensor, pairing: Pairing) -> Mixed | None:
        """The noisy images; a lam below alpha does not occur and is raised to it."""
        return MixUp()(x, pairing._replace(lam=pairing.lam.clamp(min=self.config.alpha)))
