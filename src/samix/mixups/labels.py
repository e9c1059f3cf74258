"""Labels as rows: indices become one-hot rows, rows may be smoothed, bad labels are refused by name."""

from torch import Tensor
from torch.nn import functional as F

from samix.typing import SoftLabels


def one_hot(y: Tensor, classes: int) -> SoftLabels:
    """Class indices [B] become one-hot rows [B, classes]; rows pass through unchanged."""
    if y.ndim == 1 and not y.is_floating_point():
        check_labels(y, classes)
        return F.one_hot(y.long(), classes).float()
    if y.ndim == 2 and y.shape[1] == classes:
        return y.float()
    raise ValueError(
        f"labels must have shape [B] (class indices) or [B, {classes}] (soft labels); "
        f"got {list(y.shape)} of {y.dtype}." + (" Call y.squeeze(1)." if y.shape[1:] == (1,) else "")
    )


def smooth(rows: SoftLabels, smoothing: float) -> SoftLabels:
    """(1 - smoothing) y + smoothing / classes."""
    return (1 - smoothing) * rows + smoothing / rows.shape[1] if smoothing else rows


def check_indices(y: Tensor, count: int) -> None:
    """Refuses anything but one class index per image; rows and columns would broadcast into a wrong loss."""
    if y.shape != (count,) or y.is_floating_point():
        hint = " Call y.squeeze(1)." if y.shape == (count, 1) else ""
        raise ValueError(
            f"labels must be class indices, shape [{count}] for {count} images; "
            f"got {list(y.shape)} of {y.dtype}.{hint}"
        )


def check_labels(y: Tensor, classes: int) -> None:
    """Refuses class indices outside [0, classes), naming the first bad one."""
    bad = ((y < 0) | (y >= classes)).nonzero()
    if len(bad):
        where = int(bad[0])
        raise ValueError(
            f"labels must lie in [0, {classes - 1}] for {classes} classes; "
            f"label {int(y[where])} at position {where} does not. Check the number of classes."
        )
