"""Accuracy and calibration of classifiers, counted in one pass and summed over processes."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from samix.core.shapes import Labels, Logits

BINS = 15


class Counts(NamedTuple):
    """Sums that add up over batches and processes, as one float64 vector.

    [pictures, top-1 hits, top-5 hits, cross-entropy] and per confidence bin [pictures, confidence, hits].
    """

    totals: Tensor
    bins: Tensor

    def __add__(self, other: "Counts") -> "Counts":  # type: ignore[override]
        return Counts(self.totals + other.totals, self.bins + other.bins)


class Score(NamedTuple):
    """Percentages, but for the mean cross-entropy in nats; `ece` is the expected calibration error over 15
    bins of confidence."""

    top1: float
    top5: float
    ece: float
    cross_entropy: float


def count(logits: Logits, y: Labels) -> Counts:
    """The sums of one batch."""
    log_p = logits.float().log_softmax(dim=1)
    confidence, _ = logits.float().softmax(dim=1).max(dim=1)
    ranked = logits.topk(min(5, logits.shape[1]), dim=1).indices == y[:, None]  # [B, 5]
    # float64 from here on, and on the CPU, because Apple's GPUs do not have it.
    confidence, ranked = confidence.cpu().double(), ranked.cpu()
    hit = ranked[:, 0].double()
    surprise = -log_p.gather(1, y[:, None]).cpu().double().sum()
    totals = torch.stack([hit.new_tensor(len(y)), hit.sum(), ranked.any(dim=1).double().sum(), surprise])
    which = (confidence * BINS).long().clamp(max=BINS - 1)
    rows = torch.stack([torch.ones_like(hit), confidence, hit])  # [3, B]
    bins = hit.new_zeros(3, BINS).index_add(1, which, rows)
    return Counts(totals, bins)


def score(counts: Counts) -> Score:
    """Percentages and means out of the sums."""
    pictures, top1, top5, surprise = counts.totals.tolist()
    gap = (counts.bins[1] - counts.bins[2]).abs().sum().item()
    return Score(100 * top1 / pictures, 100 * top5 / pictures, 100 * gap / pictures, surprise / pictures)


def total(counts: Iterable[Counts]) -> Counts:
    """The sum of all counts."""
    first, *rest = counts
    for other in rest:
        first = first + other
    return first
