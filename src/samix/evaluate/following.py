"""Does the mask follow lam? The mean of a Mixer's raw masks against the lam that was asked for."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Following(NamedTuple):
    """How well mean(mask) follows lam, before any adjusting."""

    correlation: float
    """Pearson's correlation of mean(mask) with lam over all pairs; 0 for masks deaf to lam."""
    gap: float
    """Mean of |mean(mask) - lam|."""
    deviation: float
    """Mean spatial standard deviation of a mask; 0 is the trivial solution."""


def follow_lam(masks: Float[Tensor, "L N 1 H W"], lams: Float[Tensor, "L"]) -> Following:
    """Compares masks of N pairs over a sweep of L lams with those lams."""
    means = masks.double().mean(dim=(2, 3, 4))  # [L, N]
    wanted = lams.double()[:, None].expand_as(means)
    centred, target = means - means.mean(), wanted - wanted.mean()
    scale = centred.norm() * target.norm()
    correlation = (centred * target).sum() / scale if scale > 0 else torch.zeros(())
    deviation = masks.double().flatten(2).std(dim=2).mean()
    return Following(float(correlation), float((means - wanted).abs().mean()), float(deviation))
