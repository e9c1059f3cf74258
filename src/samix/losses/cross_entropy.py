"""Cross-entropy for clean and mixed labels, in float32 at least, whatever the precision of the logits."""

from torch.nn import functional as F

from samix.pairing import Pairing
from samix.precision import widened
from samix.typing import AnyLabels, Labels, Logits, PerSample, Scalar, SoftLabels


def cross_entropy(logits: Logits, y: AnyLabels, smoothing: float = 0.0) -> Scalar:
    """-y log p, SAMix Eq. (1), mean over the batch; `smoothing` moves that share of y to all classes."""
    logits = widened(logits)
    target = y.to(logits) if y.is_floating_point() else y.long()
    return F.cross_entropy(logits, target, label_smoothing=smoothing)


def mixup_cross_entropy(logits: Logits, y: Labels, pairing: Pairing, smoothing: float = 0.0) -> Scalar:
    """lam CE(y_i, p_m) + (1 - lam) CE(y_j, p_m), SAMix Eq. (3) with y_i and y_j restored (E1)."""
    return mixup_cross_entropy_per_sample(logits, y, pairing, smoothing).mean()


def mixup_cross_entropy_per_sample(
    logits: Logits, y: Labels, pairing: Pairing, smoothing: float = 0.0
) -> PerSample:
    """Eq. (3) before the mean over the batch, so that per-sample lam weighs each sample first."""
    log_p = F.log_softmax(widened(logits), dim=1)
    hard = -pairing.lam * of_class(log_p, y) - (1 - pairing.lam) * of_class(log_p, y[pairing.index])
    return (1 - smoothing) * hard - smoothing * log_p.mean(dim=1)


def of_class(values: Logits, y: Labels) -> PerSample:
    """values[i, y_i]; `gather` refuses negative labels on every device, indexing would count from the end."""
    return values.gather(1, y.long()[:, None])[:, 0]


def soft_binary_cross_entropy(logits: Logits, targets: SoftLabels) -> Scalar:
    """MBCE: sum over classes of BCE(sigmoid(v_c), target_c), mean over the batch."""
    logits = widened(logits)
    loss = F.binary_cross_entropy_with_logits(logits, targets.to(logits), reduction="none")
    return loss.sum(dim=1).mean()
