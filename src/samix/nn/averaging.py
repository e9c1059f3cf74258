"""An average of a network's weights over the last steps (EMA), to test beside the network itself.

    theta_a <- m theta_a + (1 - m) theta     after every step, from the network's first weights on

Statistics of batch norm are averaged alike, because those of the network fit other weights; counters are
copied. As in DeiT's and Swin's own code, m does not change during training.
"""

import torch
from torch import Tensor, nn

from samix.nn.encoder import momentum_copy, momentum_update


class WeightAverage(nn.Module):
    """The average of a network, always in eval mode; `follow` takes one step towards it."""

    def __init__(self, network: nn.Module, momentum: float) -> None:
        super().__init__()
        self.network, self.momentum = momentum_copy(network), momentum
        self.eval()

    def train(self, mode: bool = True) -> "WeightAverage":
        """Stays in eval mode."""
        return super().train(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)

    @torch.no_grad()
    def follow(self, source: nn.Module) -> None:
        """theta_a <- m theta_a + (1 - m) theta, over parameters and statistics."""
        momentum_update(self.network, source, self.momentum)
        for mine, theirs in zip(self.network.buffers(), source.buffers(), strict=True):
            if mine.is_floating_point():
                mine.lerp_(theirs, 1 - self.momentum)
            else:
                mine.copy_(theirs)
