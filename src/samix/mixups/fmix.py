"""FMix (arXiv 2002.12047): a binary mask cut out of a random low-frequency image.

White noise is weighed by max(f, 1 / max(H, W))^-decay in the frequency domain and transformed back to pixels.
The m largest pixels show the first image; m is lam H W, rounded up or down at random.

By default the spectrum is the paper's, the same in every direction. The official code (ecs-vlc/FMix) confuses
two axes; `spectrum="code"` does the same, to compare with published numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from samix.core.checks import check_positive, check_words
from samix.core.devices import send
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy

SpectrumName: TypeAlias = Literal["paper", "code"]
Spectrum: TypeAlias = Callable[[Size, int, float, RandomSource], Tensor]


def decay_scale(size: Size, decay: float) -> Float[Tensor, "H K"]:
    """max(f, 1 / max(H, W))^-decay for every frequency of a real image, divided by its largest value.

    Only the order of the pixels matters, and values of at most 1 cannot overflow.
    """
    rows, columns = torch.fft.fftfreq(size[0]), torch.fft.rfftfreq(size[1])
    frequency = torch.hypot(rows[:, None], columns[None])
    return (frequency * max(size)).clamp(min=1) ** -decay


def paper_spectrum(
    size: Size, count: int, decay: float, generator: RandomSource = None
) -> Complex[Tensor, "N H K"]:
    """Draws s(r, k) (a + i b) with a, b ~ N(0, 1).

    Columns 0 and W / 2 are their own mirror images, and the inverse transform averages their two halves. The
    factor sqrt(2) gives these vertical waves as much power as the horizontal ones.
    """
    scale = decay_scale(size, decay)
    scale[:, 0] *= 2**0.5
    if size[1] % 2 == 0:
        scale[:, -1] *= 2**0.5
    noise = torch.randn(count, *scale.shape, 2, generator=generator)
    return torch.view_as_complex(noise) * scale


def code_spectrum(
    size: Size, count: int, decay: float, generator: RandomSource = None
) -> Complex[Tensor, "N K 2"]:
    """Draws s(0, k) a + i s(1, k) b in row k, for horizontal frequencies 0 and 1 only (official code)."""
    scale = decay_scale(size, decay)[:2].T  # [K, 2]: the weights of the real and of the imaginary part
    noise = torch.randn(count, len(scale), 2, 2, generator=generator)
    return torch.view_as_complex(noise * scale[:, None])


SPECTRA: dict[SpectrumName, Spectrum] = {"paper": paper_spectrum, "code": code_spectrum}


def keep_largest(grey: Float[Tensor, "N H W"], count: Tensor) -> Mask:
    """1 at the `count` largest pixels of each image, 0 elsewhere; exactly `count`, even with ties."""
    order = grey.flatten(1).argsort(dim=1, descending=True)
    kept = (torch.arange(order.shape[1], device=grey.device)[None] < count[:, None]).to(grey.dtype)
    return torch.zeros_like(kept).scatter(1, order, kept).view(-1, 1, *grey.shape[1:])


def fmix_mask(
    size: Size,
    lam: Lam,
    decay: float = 3.0,
    spectrum: SpectrumName = "paper",
    generator: RandomSource = None,
) -> Mask:
    """1 at the lam H W largest pixels of a random low-frequency image: one per lam."""
    waves = SPECTRA[spectrum](size, len(lam), decay, generator)
    coin = torch.rand(len(lam), generator=generator) < 0.5
    grey = torch.fft.irfft2(send(waves, lam.device), s=size)  # missing frequencies count as 0
    pixels = lam.detach() * (size[0] * size[1])
    return keep_largest(grey, torch.where(send(coin, lam.device), pixels.ceil(), pixels.floor()))


@dataclass(frozen=True, kw_only=True)
class FMix(Policy):
    """Irregular connected regions of the partner replace those of the first image."""

    decay: float = 3.0
    """Power of the decay over frequencies; a larger one gives smoother and larger regions."""
    spectrum: SpectrumName = "paper"
    """The spectrum of the "paper", or that of the official "code" (used for the paper's tables)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "mixup", "decay")
        check_words(self, "mixup")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One mask per lam, on the device and in the dtype of the images."""
        size = x.shape[-2:]
        return fmix_mask(size, pairing.lam, self.decay, self.spectrum, generator).to(x)
