"""AugMix inside a method: cross-entropy on clean pictures, and the same answer on two views of each.

L = CE(p, y) + jsd_weight JSD(p, p', p''), with p' and p'' of two independent draws of the policy (arXiv
1912.02781). All 3 N images go through the network at once and share its batch statistics, as in google-
research/augmix.
"""

import torch

from samix.losses.consistency import jensen_shannon
from samix.methods.base import Losses
from samix.methods.mixing import Mixing
from samix.methods.supervised import Supervised
from samix.mixups.augmix import AugMix
from samix.typing import Images, Labels, Stats


class AugMixing(Mixing):
    """`Mixing` with the consistency loss; where its weight is 0, one view and cross-entropy alone."""

    policy: AugMix

    def __init__(self, method: Supervised, policy: AugMix, stats: Stats | None = None) -> None:
        super().__init__(method, policy, stats)
        if policy.jsd_weight and method.objective.clean_weight:
            raise ValueError(
                "AugMix learns from clean images already, so objective.clean_weight must be 0, got "
                f"{method.objective.clean_weight}; or set mixup.jsd_weight to 0."
            )

    def forward(self, x: Images, y: Labels, progress: float = 0.0) -> Losses:
        """The method's clean loss plus the weighted divergence of the three answers."""
        if not self.policy.jsd_weight:
            return super().forward(x, y, progress)
        self.method.check(x, y)
        hints = self.supplier(self.policy.needs, x, y)
        views = [self.policy(x, self.policy.draw(len(x), device=x.device), hints).x for _ in range(2)]
        logits, logits_1, logits_2 = self.method.logits(torch.cat([x, *views])).chunk(3)
        divergence = jensen_shannon(logits, logits_1, logits_2)
        return Losses(self.method.clean_loss(logits, y) + self.policy.jsd_weight * divergence)
