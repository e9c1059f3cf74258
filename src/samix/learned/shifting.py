"""Lambda adjusting by a shift: the border of a mask moves until its mean is lam. Ours; the paper scales."""

import torch

from samix.core.shapes import Lam, Mask


def shift_mask(mask: Mask, lam: Lam, temperature: float = 0.5) -> Mask:
    """sigmoid((logit(mask) + b) / temperature), with b for each mask such that its mean is lam.

    The border of a decided mask moves; scaling would make the mask grey instead. The paper has no such rule.

    >>> mask = torch.tensor([0.9, 0.8, 0.2, 0.1]).view(1, 1, 1, 4)
    >>> shift_mask(mask, torch.tensor([0.25])).mean().item()
    0.25
    """
    tiny = 1e-4
    return balance(mask.float().clamp(tiny, 1 - tiny).logit() / temperature, lam)


def balance(logits: Mask, lam: Lam, rounds: int = 30) -> Mask:
    """sigmoid(logits + b), with b for each map such that the mean is lam: by bisection, then one Newton step.

    The step has the gradient of b, so that the whole is differentiable; lam keeps 1e-3 away from 0 and 1.
    """
    target, largest = lam.view(-1, 1, 1, 1).clamp(1e-3, 1 - 1e-3), logits.detach().abs().amax() + 10
    with torch.no_grad():
        low = -largest.expand(max(len(logits), len(target)), 1, 1, 1)
        high = -low
        for _ in range(rounds):
            middle = (low + high) / 2
            below = (logits + middle).sigmoid().mean(dim=(1, 2, 3), keepdim=True) < target
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        shift = (low + high) / 2
    mask = (logits + shift).sigmoid()
    slope = (mask * (1 - mask)).mean(dim=(1, 2, 3), keepdim=True).detach().clamp(min=1e-6)
    return (logits + shift - (mask.mean(dim=(1, 2, 3), keepdim=True) - target) / slope).sigmoid()
