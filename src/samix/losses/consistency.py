"""Consistency between predictions on views of one picture (AugMix, arXiv 1912.02781)."""

import torch
from torch.nn import functional as F

from samix.typing import Logits, Scalar


def jensen_shannon(logits: Logits, logits_1: Logits, logits_2: Logits) -> Scalar:
    """(KL(p | M) + KL(p_1 | M) + KL(p_2 | M)) / 3, M = clamp((p + p_1 + p_2) / 3, 1e-7, 1).

    Mean over the batch. The clamp is google-research/augmix's. In float32, and from log-probabilities, so
    that a probability of exactly 0 costs 0 and has a finite gradient.
    """
    log_p = F.log_softmax(torch.stack([logits, logits_1, logits_2]).float(), dim=2)  # [3, B, K]
    p = log_p.exp()
    log_mean = p.mean(dim=0).clamp(1e-7, 1).log()
    return (p * (log_p - log_mean)).sum(dim=2).mean()
