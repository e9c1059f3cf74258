"""A Mixer whose masks weigh lam by construction, and whose two directions agree. Ours; the paper has neither.

    l = g (P c_i - P' c_j),       P' and c_j those of the swapped pair
    s_i = sigmoid(U(l) + b),      b such that mean(s_i) = lam

The paper's Mixer can lower its loss by moving the mean of a mask away from lam; on good features it does, and
adjusting afterwards turns decided masks grey. Here there is nothing to gain that way: mask loss and lambda
adjusting have nothing left to do. s_j, painted with 1 - lam, is 1 - s_i.
"""

import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.core.shapes import Maps, Mask, Size
from samix.learned.mixer import AdaptiveLam, ConcatLam, Content, Mixer, NoLam, gather_content, upsample_mask
from samix.learned.shifting import balance


class BalancedMixer(Mixer):
    """Eqs. (9)-(11) for both pictures of a pair; the difference of their logits decides who shows.

    >>> from samix.learned.mixer import MixerConfig
    >>> mixer = MixerConfig(balanced=True).build(channels=8)
    >>> pairing = Pairing(torch.tensor([0.3]), torch.tensor([1, 0]))
    >>> [round(mask.mean().item(), 3) for mask in mixer(torch.rand(2, 8, 4, 4), pairing, size=(32, 32))]
    [0.3, 0.3]
    """

    def __init__(
        self,
        encoding: AdaptiveLam | ConcatLam | NoLam,
        attention: nn.Module,
        content: nn.Module,
        *,
        upsample: str = "bilinear",
        limit: float = 4.0,
    ) -> None:
        super().__init__(encoding, attention, content, upsample=upsample, sigmoid_last=True)
        self.log_gain, self.limit = nn.Parameter(torch.tensor(1.0)), limit

    def forward(self, z: Maps, pairing: Pairing, size: Size) -> Mask:
        """Masks [B, 1, *size] of each first image, of mean lam."""
        with torch.autocast(z.device.type, enabled=False):
            z = z.to(next(self.parameters()).dtype)
            difference = self.vote(z, z[pairing.index], pairing.lam)
            low = bound_spread(self.log_gain.exp() * difference, self.limit)
            return balance(upsample_mask(low, size, self.upsample), pairing.lam)

    def vote(self, z_i: Maps, z_j: Maps, lam: Tensor) -> Content:
        """P c_i - P' c_j at the maps' own size: where the first picture has more to show than its partner."""
        first, second = self.encoding(z_i, lam), self.encoding(z_j, 1 - lam)
        return self.read(first, second) - self.read(second, first)

    def read(self, first: Maps, second: Maps) -> Content:
        """P c of the first maps."""
        return gather_content(self.content(first), self.attention(first, second))


def bound_spread(logits: Content, limit: float) -> Content:
    """Logits without their mean, with a standard deviation below `limit`.

    >>> bound_spread(torch.tensor([-1e6, 0.0, 1e6]).view(1, 1, 1, 3), limit=4.0).std(unbiased=False).round()
    tensor(4.)

    A common shift is free where b follows, and a common factor makes masks more decided without end:
    unbounded logits run into saturation, where the Mixer's gradient dies.
    """
    centred = logits - logits.mean(dim=(1, 2, 3), keepdim=True)
    spread = centred.square().mean(dim=(1, 2, 3), keepdim=True).add(1e-12).sqrt()
    return centred * (limit / (limit + spread))
