"""Cross-entropy for clean and mixed labels, in float32 at least, whatever the precision of the logits."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import Mixed, one_hot, smooth
from samix.core.pairing import Pairing
from samix.core.shapes import AnyLabels, Logits, PerSample, Scalar, SoftLabels


def widen(values: Tensor) -> Tensor:
    """Half precision as float32, because it is too coarse for a softmax; wider types as they are.

    >>> widen(torch.zeros(2, dtype=torch.bfloat16)).dtype, widen(torch.zeros(2, dtype=torch.float64)).dtype
    (torch.float32, torch.float64)
    """
    return values.to(torch.promote_types(values.dtype, torch.float32))


def cross_entropy(logits: Logits, y: AnyLabels, smoothing: float = 0.0) -> Scalar:
    """-y log p, SAMix Eq. (1), mean over the batch; `smoothing` moves that share of y to all classes.

    >>> p = torch.tensor([[0.75, 0.25]])
    >>> loss = cross_entropy(p.log(), torch.tensor([0]))  # -log of what the label's class was given
    >>> round((-loss).exp().item(), 4)
    0.75
    >>> bool(cross_entropy(p.log(), p) < cross_entropy(torch.zeros(1, 2), p))  # soft labels: least at p = y
    True
    """
    logits = widen(logits)
    target = y.to(logits) if y.is_floating_point() else y.long()
    return F.cross_entropy(logits, target, label_smoothing=smoothing)


def mixup_cross_entropy(logits: Logits, y: AnyLabels, pairing: Pairing, smoothing: float = 0.0) -> Scalar:
    """lam CE(y_i, p_m) + (1 - lam) CE(y_j, p_m), SAMix Eq. (3) with y_i and y_j restored (E1).

    Equals the cross-entropy with soft labels:

    >>> logits, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> pairing = Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
    >>> rows = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
    >>> torch.isclose(mixup_cross_entropy(logits, y, pairing), cross_entropy(logits, rows)).item()
    True
    """
    return mixup_cross_entropy_per_sample(logits, y, pairing, smoothing).mean()


def mixup_cross_entropy_per_sample(
    logits: Logits, y: AnyLabels, pairing: Pairing, smoothing: float = 0.0
) -> PerSample:
    """Eq. (3) before the mean over the batch, so that per-sample lam weighs each sample first.

    >>> p, y = torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 1])
    >>> pairing = Pairing(lam=torch.tensor([1.0, 0.0]), index=torch.tensor([1, 0]))
    >>> loss = mixup_cross_entropy_per_sample(p.log(), y, pairing)  # -log p of the own and of the partner's
    >>> [round(value, 4) for value in (-loss).exp().tolist()]
    [0.75, 0.5]
    """
    log_p = F.log_softmax(widen(logits), dim=1)
    hard = -pairing.lam * of_class(log_p, y) - (1 - pairing.lam) * of_class(log_p, y[pairing.index])
    return (1 - smoothing) * hard - smoothing * log_p.mean(dim=1)


def of_class(values: Logits, y: AnyLabels) -> PerSample:
    """values[i, y_i], or sum_c values[i, c] y_ic for soft labels y.

    `gather` refuses negative labels on every device; indexing would count from the end.

    >>> values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> of_class(values, torch.tensor([1, 0])).tolist(), of_class(values, torch.full((2, 2), 0.5)).tolist()
    ([2.0, 3.0], [1.5, 3.5])
    """
    if y.ndim == 2:
        return (values * y.to(values)).sum(dim=1)
    return values.gather(1, y.long()[:, None])[:, 0]


def soft_binary_cross_entropy(logits: Logits, targets: SoftLabels) -> Scalar:
    """MBCE: sum over classes of BCE(sigmoid(v_c), target_c), mean over the batch.

    Every class costs log 2 where the network is undecided; least where sigmoid(v_c) = target_c:

    >>> target = torch.tensor([[0.75, 0.25, 0.5]])
    >>> undecided = soft_binary_cross_entropy(torch.zeros(1, 3), target)
    >>> round(undecided.exp().item(), 3)  # 2 * 2 * 2
    8.0
    >>> bool(soft_binary_cross_entropy(target.logit(), target) < undecided)
    True
    """
    logits = widen(logits)
    loss = F.binary_cross_entropy_with_logits(logits, targets.to(logits), reduction="none")
    return loss.sum(dim=1).mean()


SHOWN = 1e-3
"""A class belongs to a mixture if its label weighs more than this, as in OpenMixup."""


def decoupled_cross_entropy(logits: Logits, labels: SoftLabels) -> Scalar:
    """sum over the classes i of a mixture of -log e^(v_i) / (e^(v_i) + sum_(c not in the mixture) e^(v_c)),
    mean over the batch: the decoupled regularizer of Decoupled Mixup (arXiv 2203.10761).

    Every class of a mixture is told from the classes that are not in it, whatever its share; unlike in a
    softmax over all classes, they do not take probability from each other. `labels` are soft and not
    smoothed; a picture of one class costs nothing. The paper adds eta times this to mixup cross-entropy.

    Two classes of a mixture, of 4, undecided: each competes with the 2 others and gets 1/3.

    >>> rows = torch.tensor([[0.9, 0.1, 0.0, 0.0]])
    >>> round(decoupled_cross_entropy(torch.zeros(1, 4), rows).exp().item(), 3)
    9.0
    >>> sure_of_both = torch.tensor([[9.0, 9.0, -9.0, -9.0]])
    >>> decoupled_cross_entropy(sure_of_both, rows).item() < 1e-6 < cross_entropy(sure_of_both, rows).item()
    True
    """
    logits, shown = widen(logits), labels > SHOWN
    others = logits.masked_fill(shown, -torch.inf).logsumexp(dim=1, keepdim=True)  # [B, 1]
    losses = (F.softplus(others - logits) * shown).sum(dim=1)
    return (losses * (shown.sum(dim=1) > 1)).mean()


def jensen_shannon(logits: Logits, logits_1: Logits, logits_2: Logits) -> Scalar:
    """(KL(p | M) + KL(p_1 | M) + KL(p_2 | M)) / 3, M = clamp((p + p_1 + p_2) / 3, 1e-7, 1), mean over the
    batch.

    The consistency of AugMix (arXiv 1912.02781) between predictions on views of one picture; the clamp is
    google-research/augmix's. In float32, and from log-probabilities, so that a probability of exactly 0 costs
    0 and has a finite gradient.

    >>> same, sure = torch.tensor([[2.0, 1.0, 0.0]]), 100 * torch.eye(3)
    >>> abs(jensen_shannon(same, same, same).item()) < 1e-6
    True
    >>> round(jensen_shannon(sure[:1], sure[1:2], sure[2:]).exp().item(), 3)  # log 3 is the most
    3.0
    """
    log_p = F.log_softmax(torch.stack([logits, logits_1, logits_2]).float(), dim=2)  # [3, B, K]
    p = log_p.exp()
    log_mean = p.mean(dim=0).clamp(1e-7, 1).log()
    return (p * (log_p - log_mean)).sum(dim=2).mean()


class LabelLoss(NamedTuple):
    """The loss by which a classifier learns labels, of clean and of mixed images.

    >>> loss, logits, y = LabelLoss(classes=2), torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    >>> pairing = Pairing(lam=torch.ones(1), index=torch.tensor([1, 0]))
    >>> mixed = Mixed(torch.zeros(2, 3, 8, 8), torch.ones(2, 1, 8, 8), pairing)
    >>> torch.isclose(loss.mixed(logits, mixed, y), loss.clean(logits, y)).item()  # lam = 1 mixes nothing
    True
    """

    classes: int
    smoothing: float = 0.0
    binary: bool = False
    """Binary cross-entropy per class (MBCE) instead of softmax cross-entropy (MCE)."""
    two_hot: bool = False
    """With `binary`: the target of a mixture is 1 for both classes (RSB)."""
    decoupled: float = 0.0
    """eta of Decoupled Mixup: the weight of `decoupled_cross_entropy` beside mixup cross-entropy."""

    def clean(self, logits: Logits, y: AnyLabels) -> Scalar:
        """CE(y_i, p_i), SAMix Eq. (1), or its binary form."""
        if self.binary:
            return soft_binary_cross_entropy(logits, smooth(one_hot(y, self.classes), self.smoothing))
        return cross_entropy(logits, y, self.smoothing)

    def mixed(self, logits: Logits, mixed: Mixed, y: AnyLabels) -> Scalar:
        """Mixup cross-entropy, plus eta times the decoupled regularizer where that is asked for."""
        loss = self.mixup(logits, mixed, y)
        if not self.decoupled:
            return loss
        return loss + self.decoupled * decoupled_cross_entropy(logits, mixed.soft_labels(y, self.classes))

    def mixup(self, logits: Logits, mixed: Mixed, y: AnyLabels) -> Scalar:
        """Mixup cross-entropy, SAMix Eq. (3), or its binary form."""
        if self.binary:
            target = mixed.soft_labels(y, self.classes)
            if self.two_hot:
                target = (target > 0).to(target)
            return soft_binary_cross_entropy(logits, smooth(target, self.smoothing))
        if mixed.parents is not None:
            return cross_entropy(logits, mixed.soft_labels(y, self.classes, self.smoothing))
        return mixup_cross_entropy(logits, y, mixed.pairing, self.smoothing)
