"""Losses without negatives: predict the other view's embedding (BYOL, SimSiam)."""

from torch.nn import functional as F

from samix.pairing import Pairing
from samix.typing import Embeddings, PerSample, Scalar


def cosine(prediction: Embeddings, target: Embeddings, pairing: Pairing | None = None) -> PerSample:
    """cos(p, z_i), for mixed images lam cos(p, z_i) + (1 - lam) cos(p, z_j); no gradient to the target.

    The mixed target is not normalised again, so lam |p - z_i|^2 + (1 - lam) |p - z_j|^2 has equal gradients.
    """
    p, z = F.normalize(prediction.float(), dim=1), F.normalize(target.detach().float(), dim=1)
    own = (p * z).sum(dim=1)
    if pairing is None:
        return own
    return pairing.lam * own + (1 - pairing.lam) * (p * z[pairing.index]).sum(dim=1)


def byol_loss(prediction: Embeddings, target: Embeddings, pairing: Pairing | None = None) -> Scalar:
    """2 - 2 cos(p, z), one direction of BYOL (arXiv 2006.07733), mean over the batch."""
    return (2 - 2 * cosine(prediction, target, pairing)).mean()


def simsiam_loss(prediction: Embeddings, target: Embeddings, pairing: Pairing | None = None) -> Scalar:
    """-cos(p, z) / 2, one direction of SimSiam (arXiv 2011.10566), mean over the batch."""
    return -cosine(prediction, target, pairing).mean() / 2
