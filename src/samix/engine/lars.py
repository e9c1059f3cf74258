"""LARS (arXiv 1708.03888) in the form of MoCo v3, which BYOL shares.

    d = g + wd w;  d <- d trust |w| / |d|, as it is if a norm is 0;  buf = momentum buf + d;  w <- w - lr buf

timm's Lars is another optimizer: it divides by |g| + wd |w| instead of |g + wd w|, so its steps are shorter
wherever gradient and decay do not point the same way, and learning rates do not carry over.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, optim


class Lars(optim.Optimizer):
    """SGD with momentum whose step is a share `trust` of each parameter's norm.

    Parameters of at most one dimension (biases, norms, scalars) and groups with `adapt=False` follow plain
    SGD with momentum, without weight decay.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        *,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 1e-3,
        adapt: bool = True,
    ) -> None:
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust}
        for name, value in settings.items():
            if not value >= 0:
                raise ValueError(f"{name} of Lars must not be negative, got {value}.")
        super().__init__(params, settings | {"adapt": adapt})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Updates every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            graded = [weight for weight in group["params"] if weight.grad is not None]
            adapted = [weight for weight in graded if group["adapt"] and weight.ndim > 1]
            spared = [weight for weight in graded if not (group["adapt"] and weight.ndim > 1)]
            if adapted:
                gradients = [weight.grad for weight in adapted]
                moves = scaled(gradients, adapted, group["weight_decay"], group["trust"])
                self._descend(adapted, moves, group)
            if spared:
                self._descend(spared, [weight.grad for weight in spared], group)
        return loss

    def _descend(self, weights: list[Tensor], moves: list[Tensor], group: dict[str, Any]) -> None:
        """buf = momentum buf + d;  w <- w - lr buf."""
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        buffers = [self.state[weight]["momentum_buffer"] for weight in weights]
        torch._foreach_mul_(buffers, group["momentum"])
        torch._foreach_add_(buffers, moves)
        torch._foreach_add_(weights, buffers, alpha=-group["lr"])


def scaled(gradients: list[Tensor], weights: list[Tensor], weight_decay: float, trust: float) -> list[Tensor]:
    """Gradients with decay, each as long as a share `trust` of its weight."""
    moves = list(torch._foreach_add(gradients, weights, alpha=weight_decay))
    lengths, sizes = (torch.stack(list(torch._foreach_norm(tensors))) for tensors in (moves, weights))
    ratios = torch.where((lengths > 0) & (sizes > 0), trust * sizes / lengths, 1.0)
    torch._foreach_mul_(moves, ratios.unbind())
    return moves
