"""A hand-made policy inside a method: mix the batch and learn from it."""

import torch
from torch import nn

from samix.methods.base import Losses
from samix.methods.hints import Supplier, still
from samix.methods.supervised import Supervised
from samix.mixups.base import Mixup
from samix.mixups.mixed import Mixed
from samix.pairing import Pairing
from samix.typing import Images, Labels, Logits, Maps, Stats


class Mixing(nn.Module):
    """`policy` decides how images are mixed, `method` what is learned from them.

    `stats` tells how the images were normalised, for policies that look at pixels.
    """

    def __init__(self, method: Supervised, policy: Mixup, stats: Stats | None = None) -> None:
        super().__init__()
        self.method, self.policy, self.stats = method, policy, stats

    @property
    def supplier(self) -> Supplier:
        """What the policy may ask for, taken from the network that is being trained."""

        def maps(x: Images) -> Maps:
            return still(self.method.encoder, lambda encoder: encoder.maps(x))  # type: ignore[operator]

        return Supplier(self.method.classifier, maps, stats=self.stats)

    def forward(self, x: Images, y: Labels, progress: float = 0.0) -> Losses:
        """The method's loss on one draw of the policy."""
        self.method.check(x, y)
        pairing = self.policy.draw(len(x), device=x.device)
        hints = self.supplier(self.policy.needed(pairing), x, y)
        logits, mixed = self.policy.run(self.method.classifier, x, pairing, hints)
        return Losses(self.method.mixed_loss(logits, mixed, x, y), lam=mixed.pairing.lam)

    @torch.no_grad()
    def picture(self, x: Images, y: Labels, pairing: Pairing) -> Mixed | None:
        """The batch as the policy mixes it."""
        return self.policy.picture(x, pairing, self.supplier(self.policy.needed(pairing), x, y))

    def after_step(self, progress: float) -> None:
        """Hand-made policies keep no state."""

    def heads(self, x: Images) -> dict[str, Logits]:
        """The method's heads."""
        return self.method.heads(x)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's parameters; a hand-made policy has none."""
        return self.method.parameter_groups()
