"""Section 3.1, the objective of mixup generation: what a Mixer is trained on.

    l_eta = l_+ + eta l_-                                                      Eq. (8)

l_+ asks whether a mixture is lam-smooth between its own two classes (pBCE, Eq. (6)) or instances (Eq. (7)),
l_- whether it is distinct from all others (mixup cross-entropy, Eq. (3); mixup infoNCE, Eq. (4)). The mask
loss of the appendix asks that masks weigh what lam says and are decided rather than grey.

Where the paper leaves a choice or the official code differs (E2, E7, E8, O1): docs/deviations.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.contract import MixerLog
from samix.core.checks import check_not_negative, check_positive, check_share
from samix.core.pairing import Pairing
from samix.core.schedules import linear
from samix.core.shapes import AnyLabels, Embeddings, Lam, Logits, Mask, PerSample, Scalar
from samix.losses.classification import mixup_cross_entropy_per_sample, of_class, widen
from samix.losses.contrastive import Negatives, mixup_info_nce


class EtaBalanced(NamedTuple):
    """Both parts of Eq. (8), kept apart for the log."""

    local: Scalar
    """l_+: is the mixture lam-smooth between its own two classes?"""
    globally: Scalar
    """l_-: is it distinct from all other classes?"""
    total: Scalar
    """The weighted sum of both."""


def pbce(logits: Logits, y: AnyLabels, pairing: Pairing) -> PerSample:
    """-lam log p_a - (1 - lam) log p_b with p the softmax over the logits of a and b, SAMix Eq. (6).

    Zero for a pair of one class; otherwise smallest where p_a = lam. The logit of a soft label is
    its mean over the classes.

    >>> y, pairing = torch.tensor([0, 1]), Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
    >>> def loss(p):  # of mixtures that give p to their first image's class
    ...     return pbce(torch.tensor([[p, 1 - p], [1 - p, p]]).log(), y, pairing).mean().item()
    >>> min([0.5, 0.6, 0.75, 0.9, 0.99], key=loss)
    0.75
    """
    scores, y_j = widen(logits), y[pairing.index]
    difference = of_class(scores, y) - of_class(scores, y_j)
    loss = pairing.lam * F.softplus(-difference) + (1 - pairing.lam) * F.softplus(difference)
    differ = y != y_j if y.ndim == 1 else (y != y_j).any(dim=1)
    return loss * differ


def eta_balanced(
    logits: Logits, y: AnyLabels, pairing: Pairing, eta: float, local_weight: float = 1.0
) -> EtaBalanced:
    """l_eta = l_+ + eta l_-, SAMix Eq. (8): pBCE plus eta times mixup cross-entropy, batch means.

    `local_weight` 0 with eta 1 is AutoMix's plain mixup cross-entropy.

    Undecided between its own 2 classes, and among all 4; eta = 0 leaves the local term:

    >>> pairing = Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
    >>> parts = eta_balanced(torch.zeros(2, 4), torch.tensor([0, 1]), pairing, eta=0.0)
    >>> round(parts.local.exp().item(), 3), round(parts.globally.exp().item(), 3)
    (2.0, 4.0)
    >>> bool(parts.total == parts.local)
    True
    """
    local = pbce(logits, y, pairing).mean()
    globally = mixup_cross_entropy_per_sample(logits, y, pairing).mean()
    return EtaBalanced(local, globally, local_weight * local + eta * globally)


def instance_bce(mixed: Embeddings, key: Embeddings, pairing: Pairing, tau: float = 0.2) -> Scalar:
    """-lam log p_(m,i) - (1 - lam) log p_(m,j) with p_(m,i) = e^(z_m.z_i / tau) / (e^(z_m.z_i / tau) +
    e^(z_m.z_j / tau)), SAMix Eq. (7): the local term of the instance-level loss.

    >>> key, pairing = torch.eye(2), Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
    >>> def loss(p):  # of mixtures with p_(m,i) = p
    ...     return instance_bce(torch.tensor([[p, 1 - p], [1 - p, p]]).log(), key, pairing, tau=1.0).item()
    >>> min([0.5, 0.6, 0.75, 0.9, 0.99], key=loss)
    0.75
    """
    mixed, key = mixed.float(), key.float()
    gap = (mixed * (key - key[pairing.index])).sum(dim=1) / tau
    return (pairing.lam * F.softplus(-gap) + (1 - pairing.lam) * F.softplus(gap)).mean()


def eta_balanced_instances(
    mixed: Embeddings,
    key: Embeddings,
    negatives: Negatives,
    pairing: Pairing,
    tau: float,
    eta: float,
    local_weight: float = 1.0,
) -> EtaBalanced:
    """l_eta on instances, unit vectors: Eq. (7) plus eta times mixup infoNCE, Eq. (4), batch means.

    Undecided between its own 2 instances, and among one of them and 7 negatives:

    >>> pairing = Pairing(lam=torch.tensor([0.75]), index=torch.tensor([1, 0]))
    >>> mixed, key, negatives = torch.zeros(2, 3), torch.eye(2, 3), torch.zeros(7, 3)
    >>> parts = eta_balanced_instances(mixed, key, negatives, pairing, tau=0.2, eta=0.5)
    >>> round(parts.local.exp().item(), 3), round(parts.globally.exp().item(), 3)
    (2.0, 8.0)
    """
    local = instance_bce(mixed, key, pairing, tau)
    globally = mixup_info_nce(mixed, key, negatives, pairing, tau)
    return EtaBalanced(local, globally, local_weight * local + eta * globally)


@dataclass(frozen=True, kw_only=True)
class MaskLoss:
    """beta (l_mu - variance l_sigma), the mask loss of the appendix, as settings of a learned mixup."""

    beta: float = 1.0
    """Weight of the mask loss, at the start of training if beta_end is another."""
    beta_end: float | None = None
    """Weight of the mask loss at the end, reached linearly (the paper: 0, and masks drift from lam); null:
    the weight stays."""
    margin: float = 0.0
    """How far mean(mask) may be from lam before the mask loss counts it."""
    variance: float = 0.5
    """How much the mask loss rewards the mask's variance."""
    evidence: float = 0.0
    """Weight of the evidence term: masks keep places where the frozen copy's last map is strong (ours)."""
    zoom: float = 2.0
    """How much larger than in training the frozen copy sees pictures when it looks for evidence."""

    def __post_init__(self) -> None:
        check_not_negative(self, "mixup.mask", "beta", "beta_end", "evidence")
        check_positive(self, "mixup.mask", "zoom")
        check_share(self, "mixup.mask", "margin")

    def beta_at(self, progress: float) -> float:
        """The weight of the mask loss when this share of training is done.

        >>> fading = MaskLoss(beta=0.4, beta_end=0.0)
        >>> fading.beta_at(0.0), fading.beta_at(0.5), fading.beta_at(1.0)
        (0.4, 0.2, 0.0)
        >>> MaskLoss(beta=0.4).beta_at(1.0)
        0.4
        """
        return linear(progress, self.beta, self.beta if self.beta_end is None else self.beta_end)


def mask_mean_loss(mask: Mask, lam: Lam, margin: float = 0.1) -> Scalar:
    """l_mu = max(|lam - mean(s_i)| - margin, 0), mean over the batch.

    >>> mask, lam = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([0.75])  # the mask's mean is 1/2
    >>> mask_mean_loss(mask, lam, margin=0.0).item(), mask_mean_loss(mask, lam, margin=0.25).item()
    (0.25, 0.0)
    """
    gap = (mask.mean(dim=(1, 2, 3)) - lam).abs()
    return (gap - margin).clamp(min=0).mean()


def mask_variance(mask: Mask) -> Scalar:
    """l_sigma = mean((s_i - mean(s_i))^2) in [0, 1/4], mean over the batch.

    >>> grey, decided = torch.full((1, 1, 1, 2), 0.5), torch.tensor([[[[1.0, 0.0]]]])
    >>> mask_variance(grey).item(), mask_variance(decided).item()
    (0.0, 0.25)
    """
    return mask.var(dim=(1, 2, 3), unbiased=False).mean()


def mask_loss(mask: Mask, lam: Lam, margin: float = 0.1, variance_weight: float = 2.0) -> Scalar:
    """l_mu - variance_weight * l_sigma; the paper's printed sign is `variance_weight=-1`.

    Both masks weigh what lam says; the decided one is preferred:

    >>> grey, decided = torch.full((1, 1, 1, 2), 0.5), torch.tensor([[[[1.0, 0.0]]]])
    >>> mask_loss(grey, torch.tensor([0.5])).item(), mask_loss(decided, torch.tensor([0.5])).item()
    (0.0, -0.5)
    """
    return mask_mean_loss(mask, lam, margin) - variance_weight * mask_variance(mask)


def evidence_loss(mask: Mask, energy: Float[Tensor, "B 1 h w"], pairing: Pairing) -> Scalar:
    """1 - the mean share of both pictures' evidence that the mask shows, mean over the batch. Ours.

    `energy` tells how much of what a network knows about each picture stands where. Classification alone is
    a poor guide: a judge recognises objects by any part of them, and masks that suit it best keep hardly more
    of the objects than blind ones (docs/findings.md).

    >>> energy = torch.tensor([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])  # one object left, one right
    >>> pairing = Pairing(lam=torch.tensor([0.5]), index=torch.tensor([1, 0]))
    >>> evidence_loss(energy, energy, pairing).item(), evidence_loss(1 - energy, energy, pairing).item()
    (0.0, 1.0)
    """
    shares = F.interpolate(energy.float(), mask.shape[-2:], mode="bilinear", align_corners=False)
    shares = shares / shares.sum(dim=(1, 2, 3), keepdim=True).clamp(min=1e-12)
    kept = mask * shares + (1 - mask) * shares[pairing.index]
    return 1 - kept.sum(dim=(1, 2, 3)).mean() / 2


@torch.no_grad()
def vital_signs(
    mask: Mask, lam: Lam, generation: EtaBalanced, masks: Scalar, gamma: Tensor | None
) -> MixerLog:
    """What the log tells about a Mixer's health.

    >>> grey, lam = torch.full((1, 1, 4, 4), 0.5), torch.tensor([0.75])
    >>> log = vital_signs(grey, lam, EtaBalanced(*torch.ones(3)), torch.tensor(0.25), gamma=None)
    >>> log.gap.item(), log.deviation.item()  # far from lam, and the trivial solution
    (0.25, 0.0)
    """
    return MixerLog(
        local=generation.local.detach(),
        globally=generation.globally.detach(),
        mask=masks.detach(),
        gamma=mask.new_tensor(float("nan")) if gamma is None else gamma.detach().clone(),
        gap=mask_mean_loss(mask, lam, margin=0.0),
        deviation=mask.std(dim=(1, 2, 3)).mean(),
    )
