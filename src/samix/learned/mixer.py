"""Section 3.2, the Mixer: looks at two feature maps and lam and paints where the first image shows.

    z_lam = (1 + gamma lam) z                                                  Eq. (9)
    P = softmax((W z~)^T (W z~) / N),  z~ the concatenated pair                Eq. (10)
    s_i = U(sigmoid(P c_i)),           c_i = content(z_i)                      Eq. (11)

The Mixer is the composition of three small modules, so an ablation swaps a module, and AutoMix's MixBlock is
the same composition with other parts. Lambda adjusting (appendix) then gives a mask the mean that its label
promises. How it differs from the official PixelMixBlock: docs/deviations.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.checks import (
    check_at_least,
    check_below_one,
    check_fields,
    check_not_negative,
    check_positive,
    check_share,
    check_words,
)
from samix.core.pairing import Pairing
from samix.core.shapes import Attention, Lam, Maps, Mask, Size
from samix.learned.shifting import shift_mask

Content = Float[Tensor, "B 1 h w"]


class AdaptiveLam(nn.Module):
    """z_lam = (1 + gamma lam) z with a learnable scalar gamma in [0, 1], SAMix Eq. (9).

    gamma is projected after the optimiser's step (`project`), not clamped in the forward pass: a clamp
    has no gradient outside [0, 1] and would hold a gamma that starts at 0 there for ever.

    >>> AdaptiveLam(gamma=1.0)(torch.ones(1, 1, 1, 1), torch.tensor([0.5])).item()
    1.5
    """

    extra_channels = 0

    def __init__(self, gamma: float = 0.0, rescale: float | None = None) -> None:
        super().__init__()
        self.gamma, self.rescale = nn.Parameter(torch.tensor(float(gamma))), rescale

    def forward(self, z: Maps, lam: Lam) -> Maps:
        if self.rescale is not None:
            lam = rescale_lam(lam, self.rescale)
        return (1 + self.gamma * lam.view(-1, 1, 1, 1).to(z)) * z

    @torch.no_grad()
    def project(self) -> None:
        """Puts gamma back into [0, 1]; call after every optimiser step."""
        self.gamma.clamp_(0, 1)


def rescale_lam(lam: Lam, k: float) -> Lam:
    """f_k(lam) = (4/3 lam^3 - 2 lam^2 + (k + 1) lam) / (k + 1/3): nearer to 1/2, the more so the smaller k.

    The official code's `lam_mul_k`; 0, 1/2 and 1 stay where they are.

    >>> [round(lam, 3) for lam in rescale_lam(torch.tensor([0.0, 0.25, 0.5]), k=0.25).tolist()]
    [0.0, 0.357, 0.5]
    """
    return (4 / 3 * lam**3 - 2 * lam**2 + (k + 1) * lam) / (k + 1 / 3)


class ConcatLam(nn.Module):
    """AutoMix's encoding: lam as one more, constant channel."""

    extra_channels = 1
    gamma = None

    def forward(self, z: Maps, lam: Lam) -> Float[Tensor, "B C+1 h w"]:
        plane = lam.view(-1, 1, 1, 1).expand(len(z), 1, *z.shape[-2:])
        return torch.cat([z, plane.to(z)], dim=1)


class NoLam(nn.Module):
    """No encoding at all: the mask cannot know lam (ablation)."""

    extra_channels = 0
    gamma = None

    def forward(self, z: Maps, lam: Lam) -> Maps:
        return z


def attention_weights(query: Maps, key: Maps) -> Attention:
    """softmax over the keys of query^T key / sqrt(channels), [B, n, n] for maps of n positions.

    In float32 at least: half precision is too coarse for a softmax.
    """
    wide = torch.promote_types(query.dtype, torch.float32)
    q, k = query.to(wide).flatten(2), key.to(wide).flatten(2)  # [B, c, n]
    logits = torch.einsum("bcn,bcm->bnm", q, k) / q.shape[1] ** 0.5
    return logits.softmax(dim=-1)


class MixingAttention(nn.Module):
    """P = softmax((W z~)^T (W z~) / N) on the concatenated pair z~, SAMix Eq. (10).

    Holds cross-attention between the two images and self-attention of each. `separate_key` is the
    official code's second projection for the keys.
    """

    def __init__(self, channels: int, inner: int, *, separate_key: bool = False) -> None:
        super().__init__()
        self.query = nn.Conv2d(2 * channels, inner, 1)
        self.key = nn.Conv2d(2 * channels, inner, 1) if separate_key else None

    def forward(self, z_i: Maps, z_j: Maps) -> Attention:
        pair = torch.cat([z_i, z_j], dim=1)
        query = self.query(pair)
        return attention_weights(query, query if self.key is None else self.key(pair))


class CrossAttention(nn.Module):
    """AutoMix's attention: positions of the partner ask positions of the first image."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, inner, 1)

    def forward(self, z_i: Maps, z_j: Maps) -> Attention:
        return attention_weights(self.project(z_j), self.project(z_i))


def linear_content(channels: int) -> nn.Module:
    """c = W z, one channel: the content of AutoMix, prone to the trivial constant mask."""
    return nn.Conv2d(channels, 1, 1)


def nonlinear_content(
    channels: int, inner: int, dropout: float = 0.0, *, activation: str = "relu", bias: bool = True
) -> nn.Module:
    """C_NC: 1x1 conv, BN, ReLU, dropout, 1x1 conv to one channel (SAMix Sec. 3.2).

    The official code has ELU and no biases. Dropout stands before the last convolution: behind it, as in the
    official code, it would punch holes into the one-channel map.
    """
    return nn.Sequential(
        nn.Conv2d(channels, inner, 1, bias=bias),
        nn.BatchNorm2d(inner),
        nn.ELU(inplace=True) if activation == "elu" else nn.ReLU(inplace=True),
        nn.Dropout(dropout),
        nn.Conv2d(inner, 1, 1, bias=bias),
    )


class MixerParts(NamedTuple):
    """A mask before it is put together."""

    content: Content
    attention: Attention


class Mixer(nn.Module):
    """lam encoding, attention and content, composed into a mask (SAMix Eq. (11)).

    >>> mixer, pairing = MixerConfig().build(channels=8), Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    >>> mixer(torch.rand(2, 8, 4, 4), pairing, size=(32, 32)).shape  # maps in, masks of the images out
    torch.Size([2, 1, 32, 32])
    """

    encoding: AdaptiveLam | ConcatLam | NoLam

    def __init__(
        self,
        encoding: AdaptiveLam | ConcatLam | NoLam,
        attention: nn.Module,
        content: nn.Module,
        *,
        upsample: str = "bilinear",
        sigmoid_last: bool = False,
    ) -> None:
        super().__init__()
        self.encoding, self.attention, self.content = encoding, attention, content
        self.upsample, self.sigmoid_last = upsample, sigmoid_last

    def forward(self, z: Maps, pairing: Pairing, size: Size) -> Mask:
        """Masks [B, 1, *size] of each first image, from the maps z of the batch."""
        with torch.autocast(z.device.type, enabled=False):
            content, attention = self.parts(z.to(next(self.parameters()).dtype), pairing)
            low = gather_content(content, attention)
            if self.sigmoid_last:
                return upsample_mask(low, size, self.upsample).sigmoid()
            return upsample_mask(low.sigmoid(), size, self.upsample)

    def parts(self, z: Maps, pairing: Pairing) -> MixerParts:
        """What the mask is made of: c_i [B, 1, h, w] and P [B, n, n]."""
        z_i = self.encoding(z, pairing.lam)
        z_j = self.encoding(z[pairing.index], 1 - pairing.lam)
        return MixerParts(self.content(z_i), self.attention(z_i, z_j))

    def project(self) -> None:
        """Puts constrained parameters back into their range; call after every optimiser step."""
        if isinstance(self.encoding, AdaptiveLam):
            self.encoding.project()

    @property
    def gamma(self) -> Tensor | None:
        """The strength of the lam encoding, None where the encoding has no such parameter."""
        return self.encoding.gamma


def gather_content(content: Content, attention: Attention) -> Content:
    """P c of Eq. (11): every position's content is that of all positions, as attention weighs them."""
    rows = content.to(attention).flatten(2).transpose(1, 2)  # [B, n, 1]
    return (attention @ rows).transpose(1, 2).view_as(content)


def upsample_mask(mask: Content, size: Size, mode: str) -> Mask:
    """The mask at exactly the image's size, whatever the ratio to the map's size."""
    if mode == "nearest":
        return F.interpolate(mask, size=size, mode="nearest")
    return F.interpolate(mask, size=size, mode=mode, align_corners=False)


@dataclass(frozen=True, kw_only=True)
class MixerConfig:
    """Which parts a Mixer is composed of: by default the paper's; AutoMix's and ablations differ."""

    encoding: Literal["adaptive", "concat", "none"] = "adaptive"
    """How lam enters the features: adaptive (Eq. (9)), concat (AutoMix) or none."""
    attention: Literal["mixing", "mixing-two", "cross"] = "mixing"
    """mixing (Eq. (10)), mixing-two (the official code's: keys have a projection of their own) or cross
    (AutoMix)."""
    content: Literal["nonlinear", "linear"] = "nonlinear"
    """nonlinear (C_NC of Eq. (11)) or linear (AutoMix)."""
    activation: Literal["relu", "elu"] = "relu"
    """Inside the non-linear content: relu (the paper) or elu (the official code)."""
    bias: bool = True
    """Biases in the non-linear content's convolutions; the official code has none."""
    upsample: Literal["bilinear", "nearest"] = "bilinear"
    """bilinear (SAMix) or nearest (AutoMix)."""
    sigmoid_last: bool = False
    """Upsample before the sigmoid, as the official code does (the paper's Eq. (11): behind it)."""
    gamma: float = 1.0
    """Start of the learnable gamma of Eq. (9); the paper says 0, see docs/deviations.md."""
    rescale: float | None = None
    """k of the official code's rescaled lam in Eq. (9), nearer to 1/2 (CIFAR-100: 0.25); null: lam itself."""
    dropout: float = 0.0
    """Dropout inside the non-linear content."""
    reduction: int = 2
    """Inner width is the map's channels divided by this."""
    init_std: float = 0.1
    """Standard deviation of the convolutions' first weights; the paper's 0.01 wakes up only in long runs."""
    balanced: bool = False
    """Masks of mean lam by construction, the same from both sides of a pair (ours, `BalancedMixer`)."""
    limit: float = 4.0
    """Of balanced: the logits' standard deviation stays below it; the larger, the more decided masks get."""

    def __post_init__(self) -> None:
        check_words(self, "mixer")
        check_positive(self, "mixer", "limit")
        check_share(self, "mixer", "gamma")
        check_not_negative(self, "mixer", "rescale", "init_std")
        check_below_one(self, "mixer", "dropout")
        check_at_least(1, self, "mixer", "reduction")
        check_fields(
            self, "mixer", ["reduction"], lambda value: value == int(value), "must be a whole number"
        )

    def build(self, channels: int) -> Mixer:
        """A fresh Mixer for maps of `channels` channels."""
        encoding = ENCODINGS[self.encoding](self)
        inputs, inner = channels + encoding.extra_channels, max(channels // self.reduction, 1)
        attention = ATTENTIONS[self.attention](inputs, inner)
        content = CONTENTS[self.content](self, inputs, inner)
        if self.balanced:
            from samix.learned.balanced import BalancedMixer  # it is made of this file's parts

            mixer: Mixer = BalancedMixer(
                encoding, attention, content, upsample=self.upsample, limit=self.limit
            )
        else:
            mixer = Mixer(
                encoding, attention, content, upsample=self.upsample, sigmoid_last=self.sigmoid_last
            )
        return init_mixer(mixer, self.init_std)


ENCODINGS: dict[str, Callable[[MixerConfig], Any]] = {
    "adaptive": lambda config: AdaptiveLam(config.gamma, config.rescale),
    "concat": lambda config: ConcatLam(),
    "none": lambda config: NoLam(),
}
ATTENTIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "mixing": MixingAttention,
    "mixing-two": partial(MixingAttention, separate_key=True),
    "cross": CrossAttention,
}
CONTENTS: dict[str, Callable[[MixerConfig, int, int], nn.Module]] = {
    "nonlinear": lambda config, inputs, inner: nonlinear_content(
        inputs, inner, config.dropout, activation=config.activation, bias=config.bias
    ),
    "linear": lambda config, inputs, inner: linear_content(inputs),
}


def init_mixer(mixer: Mixer, std: float = 0.01) -> Mixer:
    """Convolution weights N(0, std), zero biases: training starts near Mixup with lam 1/2."""
    for module in mixer.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return mixer


@dataclass(frozen=True, kw_only=True)
class Adjusting:
    """Lambda adjusting, as settings of a learned mixup: which of the encoder's masks are given the mean
    lam."""

    prob: float = 1.0
    """Probability per batch that the encoder's masks are adjusted to mean lam."""
    rule: Literal["scale", "shift"] = "scale"
    """scale (the paper's, two-sided) makes decided masks grey; shift moves their border instead."""
    temperature: float = 0.5
    """Of shift: below 1 masks become sharper."""
    margin: float = 0.0
    """How far mean(mask) may be from lam before a mask is adjusted (self-supervised: .1)."""
    lam_margin: float = 0.08
    """Where min(lam, 1 - lam) is at most this, the encoder sees plain Mixup."""
    warmup: float = 0.0
    """Share of training in which the encoder sees plain Mixup while the Mixer already learns."""

    def __post_init__(self) -> None:
        check_words(self, "mixup.adjusting")
        check_share(self, "mixup.adjusting", "prob", "margin", "warmup")
        check_positive(self, "mixup.adjusting", "temperature")
        most = "must be at most 0.5 (-1: never)"
        check_fields(self, "mixup.adjusting", ["lam_margin"], lambda value: value <= 0.5, most)

    def adjust(self, mask: Mask, lam: Lam) -> Mask:
        """The mask with the mean lam, by the rule; masks whose mean is within `margin` of lam stay."""
        if self.rule == "scale":
            return adjust_mask(mask, lam, self.margin)
        mean = mask.float().mean(dim=(1, 2, 3), keepdim=True)
        # Not >: of masks that have the mean lam already (`BalancedMixer`), rounding would choose some.
        far = (mean - lam.view(-1, 1, 1, 1)).abs() >= self.margin
        return torch.where(far, shift_mask(mask, lam, self.temperature), mask.float())


def bernoulli(probability: float) -> bool:
    """A coin from torch's generator; certain at 0 and 1 without drawing."""
    return probability >= 1 or (probability > 0 and bool(torch.rand(()) < probability))


def adjust_mask(mask: Mask, lam: Lam, margin: float = 0.0) -> Mask:
    """The mask scaled so that its mean is exactly lam: down from above, or 1 - mask down from below.

    Masks whose mean is within `margin` of lam stay as they are. The paper's rule moves the mean the wrong way
    (E9).

    >>> mask = torch.tensor([[[[0.75, 0.25]]]])  # mean 1/2
    >>> [round(value, 3) for value in adjust_mask(mask, torch.tensor([0.25])).flatten().tolist()]
    [0.375, 0.125]
    >>> [round(value, 3) for value in adjust_mask(mask, torch.tensor([0.75])).flatten().tolist()]
    [0.875, 0.625]
    """
    tiny = 1e-6
    mask = mask.float().clamp(tiny, 1 - tiny)  # in half precision 1 - tiny would be 1
    mean = mask.mean(dim=(1, 2, 3), keepdim=True)
    target = lam.view(-1, 1, 1, 1)
    shrunk = mask * (target / mean)
    grown = 1 - (1 - mask) * ((1 - target) / (1 - mean))
    adjusted = torch.where(mean > target, shrunk, grown)
    return torch.where((mean - target).abs() > margin, adjusted, mask)
