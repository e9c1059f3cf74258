"""Lambda adjusting: gives a mask the mean that its label promises (SAMix appendix).

The paper's rule scales by mu / lam when mu < lam, which moves the mean the wrong way (E9). The
two-sided rule below scales whichever image shows too much, so the mask stays within [0, 1].
"""

import torch

from samix.pairing import as_image_weight
from samix.typing import Lam, Mask


def adjust_mask(mask: Mask, lam: Lam, margin: float = 0.0) -> Mask:
    """The mask scaled so that its mean is exactly lam: down from above, or 1 - mask down from below.

    Masks whose mean is within `margin` of lam stay as they are.
    """
    tiny = 1e-6
    mask = mask.float().clamp(tiny, 1 - tiny)  # in half precision 1 - tiny would be 1
    mean = mask.mean(dim=(1, 2, 3), keepdim=True)
    target = as_image_weight(lam)
    shrunk = mask * (target / mean)
    grown = 1 - (1 - mask) * ((1 - target) / (1 - mean))
    adjusted = torch.where(mean > target, shrunk, grown)
    return torch.where((mean - target).abs() > margin, adjusted, mask)
