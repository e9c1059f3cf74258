"""The loss of mixed images: that of each parent, weighed sample by sample before the mean."""

from collections.abc import Callable

import torch

from samix.mixups.mixed import Parents
from samix.typing import Index, PerSample, Scalar


def over_parents(loss: Callable[[Index], PerSample], parents: Parents) -> Scalar:
    """mean_i sum_p share_ip loss_i(positive = parent p); for a pair lam l(m, i) + (1 - lam) l(m, j)."""
    parts = [loss(positive) for positive in parents.index.unbind(dim=1)]
    return (parents.share * torch.stack(parts, dim=1)).sum(dim=1).mean()
