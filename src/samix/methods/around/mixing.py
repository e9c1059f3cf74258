"""A hand-made policy inside a classifier: mix the batch and learn from it."""

import torch
from torch import Tensor

from samix.contract import Around, Losses
from samix.core.mixed import Mixed, check_batch, check_finite
from samix.core.pairing import Pairing
from samix.core.shapes import AnyLabels, Images, Logits, Maps, Stats
from samix.losses.classification import jensen_shannon
from samix.methods.hints import Supplier
from samix.methods.supervised import Supervised
from samix.mixups.base import Policy
from samix.nn.frozen import run_frozen


class Mixing(Around):
    """`policy` decides how images are mixed, `method` what is learned from them.

    `stats` tells how the images were normalised, for policies that look at pixels.
    """

    method: Supervised

    def __init__(self, method: Supervised, policy: Policy, stats: Stats | None = None) -> None:
        super().__init__(method)
        self.policy, self.stats = policy, stats
        if policy.consistency and method.objective.clean_weight:
            raise ValueError(
                f"{type(policy).__name__} learns from clean images already, so objective.clean_weight "
                f"must be 0, got {method.objective.clean_weight}; or set mixup.jsd_weight to 0."
            )

    @property
    def masks_pairs(self) -> bool:
        """As the policy does."""
        return self.policy.masks_pairs

    @property
    def supplier(self) -> Supplier:
        """What the policy may ask for, taken from the network that is being trained."""

        def maps(x: Images) -> Maps:
            return run_frozen(self.method.encoder, lambda encoder: encoder.maps(x))

        return Supplier(self.method.classifier, maps, stats=self.stats)

    def forward(self, x: Images, y: AnyLabels, progress: float = 0.0) -> Losses:
        """The method's loss on one draw of the policy; behind `objective.mix_until` on the clean batch."""
        if not self.method.objective.mixes_at(progress):
            return self.method(x, y, progress)
        check_batch(x, y, self.method.classes)
        check_finite(x, len(x))
        if self.policy.consistency:
            return Losses(self.consistent_loss(x, y))
        pairing = self.policy.draw(len(x), device=x.device)
        hints = self.supplier(self.policy.needed(pairing), x, y)
        logits, mixed = self.policy.run(self.method.classifier, x, pairing, hints)
        return Losses(self.method.mixed_loss(logits, mixed, x, y), lam=mixed.pairing.lam)

    def consistent_loss(self, x: Images, y: AnyLabels) -> Tensor:
        """CE(p, y) + consistency JSD(p, p', p''), with p' and p'' of two independent draws of the policy
        (AugMix).

        All 3 N images go through the network at once and share its batch statistics, as in
        google-research/augmix.
        """
        hints = self.supplier(self.policy.needs, x, y)
        views = [self.policy(x, self.policy.draw(len(x), device=x.device), hints).x for _ in range(2)]
        logits, logits_1, logits_2 = self.method.logits(torch.cat([x, *views])).chunk(3)
        divergence = jensen_shannon(logits, logits_1, logits_2)
        return self.method.loss.clean(logits, y) + self.policy.consistency * divergence

    @torch.no_grad()
    def picture(self, x: Images, y: AnyLabels, pairing: Pairing) -> Mixed | None:
        """The batch as the policy mixes it."""
        return self.policy.picture(x, pairing, self.supplier(self.policy.needed(pairing), x, y))

    def heads(self, x: Images) -> dict[str, Logits]:
        """The method's heads."""
        return self.method.heads(x)
