"""Losses without negatives: predict the other view's embedding (BYOL, SimSiam)."""

from torch.nn import functional as F

from samix.core.shapes import Embeddings, PerSample


def cosine(prediction: Embeddings, target: Embeddings) -> PerSample:
    """cos(p, z) of every row; no gradient to the target.

    >>> import torch
    >>> round(cosine(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])).item(), 4)
    0.6
    """
    p, z = F.normalize(prediction.float(), dim=1), F.normalize(target.detach().float(), dim=1)
    return (p * z).sum(dim=1)


def byol_per_sample(prediction: Embeddings, target: Embeddings) -> PerSample:
    """|p / |p| - z / |z||^2 = 2 - 2 cos(p, z), one direction of BYOL (arXiv 2006.07733).

    Weighed over the parents of a mixed image it has the gradient of a mixed target that is not normalised
    again.

    >>> import torch
    >>> target = torch.tensor([[5.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])  # same, orthogonal, opposite
    >>> byol_per_sample(torch.tensor([[2.0, 0.0]] * 3), target).tolist()  # lengths do not count
    [0.0, 2.0, 4.0]
    """
    return 2 - 2 * cosine(prediction, target)


def simsiam_per_sample(prediction: Embeddings, target: Embeddings) -> PerSample:
    """-cos(p, z) / 2, one direction of SimSiam (arXiv 2011.10566).

    >>> import torch
    >>> simsiam_per_sample(torch.tensor([[2.0, 0.0]] * 2), torch.tensor([[5.0, 0.0], [-1.0, 0.0]])).tolist()
    [-0.5, 0.5]
    """
    return -cosine(prediction, target) / 2
