"""DACL (arXiv 2011.04419): mixup as noise. Both views are mixed a little, and the loss ignores it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samix.contract import Around, Context, Losses, Model
from samix.core.checks import check_below_one
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing, draw_derangement
from samix.core.shapes import Images, Index, RandomSource
from samix.methods.ssl.base import SelfSupervised, Views, views_of
from samix.mixups.mixup import MixUp


@dataclass(frozen=True, kw_only=True)
class DACLConfig:
    """How much of another image is added."""

    alpha: float = 0.9
    """lam ~ U(alpha, 1): the smallest share of the own image."""

    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_below_one(self, "mixup", "alpha")

    def build(self, method: SelfSupervised, context: Context) -> Model:
        """DACL around the method."""
        return DACL(method, self)


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

    method: SelfSupervised

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
