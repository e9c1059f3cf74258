"""Swapped prediction of SwAV (arXiv 2006.09882): the code of one view is the target of the other."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.shapes import PerSample

Scores = Float[Tensor, "B P"]


@torch.no_grad()
def sinkhorn_codes(scores: Scores, epsilon: float = 0.05, rounds: int = 3) -> Scores:
    """Codes of the samples: each sums to 1, and every prototype gets about the same share of the batch.

    >>> scores = torch.tensor([[1.0, 0.9], [1.0, 0.0]])  # both prefer prototype 0, the second sample more
    >>> codes = sinkhorn_codes(scores)
    >>> codes.argmax(dim=1).tolist(), codes.sum(dim=1).round().tolist()  # each prototype gets one of them
    ([1, 0], [1.0, 1.0])
    """
    # Subtracting the largest score changes nothing after the first division, and nothing overflows.
    codes = ((scores.float() - scores.float().max()) / epsilon).exp().T  # [P, B]
    codes, tiny = codes / codes.sum(), torch.finfo(codes.dtype).tiny
    for _ in range(rounds):
        codes = codes / codes.sum(dim=1, keepdim=True).clamp(min=tiny) / codes.shape[0]
        codes = codes / codes.sum(dim=0, keepdim=True).clamp(min=tiny) / codes.shape[1]
    return (codes * codes.shape[1]).T


def swapped_per_sample(scores: Scores, codes: Scores, tau: float = 0.1) -> PerSample:
    """-sum_p code_p log softmax(scores / tau)_p; linear in the codes, so parents' codes may be mixed.

    >>> scores = torch.tensor([[1.0, 0.0]] * 3)
    >>> codes = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> [round(loss, 3) for loss in swapped_per_sample(scores, codes, tau=0.1).tolist()]
    [0.0, 5.0, 10.0]
    """
    return -(codes * F.log_softmax(scores.float() / tau, dim=1)).sum(dim=1)
