"""A hand-made policy inside a method: mix the batch and learn from it."""

from torch import nn

from samix.methods.base import Losses
from samix.methods.supervised import Supervised
from samix.mixups.base import Mixup
from samix.typing import Images, Labels, Logits


class Mixing(nn.Module):
    """`policy` decides how images are mixed, `method` what is learned from them."""

    def __init__(self, method: Supervised, policy: Mixup) -> None:
        super().__init__()
        self.method, self.policy = method, policy

    def forward(self, x: Images, y: Labels, progress: float = 0.0) -> Losses:
        """The method's loss on one draw of the policy."""
        mixed = self.policy(x, self.policy.draw(len(x), device=x.device))
        return Losses(self.method.mixed_loss(mixed, x, y), lam=mixed.pairing.lam)

    def after_step(self, progress: float) -> None:
        """Hand-made policies keep no state."""

    def heads(self, x: Images) -> dict[str, Logits]:
        """The method's heads."""
        return self.method.heads(x)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The method's parameters; a hand-made policy has none."""
        return self.method.parameter_groups()
