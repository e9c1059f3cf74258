"""The Mixer's mask loss: masks should weigh what lam says, and be decided rather than grey.

beta (l_mu - kappa l_sigma). The paper adds the variance though it means to encourage it (E8) and
applies beta twice (E7); here the variance is subtracted and beta is the caller's single factor.
"""

from samix.typing import Lam, Mask, Scalar


def mask_mean_loss(mask: Mask, lam: Lam, margin: float = 0.1) -> Scalar:
    """l_mu = max(|lam - mean(s_i)| - margin, 0), mean over the batch."""
    gap = (mask.mean(dim=(1, 2, 3)) - lam).abs()
    return (gap - margin).clamp(min=0).mean()


def mask_variance(mask: Mask) -> Scalar:
    """l_sigma = mean((s_i - mean(s_i))^2) in [0, 1/4], mean over the batch."""
    return mask.var(dim=(1, 2, 3), unbiased=False).mean()


def mask_loss(mask: Mask, lam: Lam, margin: float = 0.1, variance_weight: float = 2.0) -> Scalar:
    """l_mu - variance_weight * l_sigma; the paper's printed sign is `variance_weight=-1`."""
    return mask_mean_loss(mask, lam, margin) - variance_weight * mask_variance(mask)
