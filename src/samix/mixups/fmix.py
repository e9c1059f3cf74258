"""FMix (arXiv 2002.12047): a binary mask cut out of a random low-frequency image.

White noise is weighed by max(f, 1 / max(H, W))^-decay in the frequency domain and brought back to pixels.
The m largest pixels keep the first image; m is lam H W, rounded up or down by a coin.

Differs from the official code (ecs-vlc/FMix): the label weight is the mask's mean instead of the drawn lam
(less than 1 / HW apart), and the spectrum is by default the one that the paper describes, the same in every
direction. The code mixes up two axes, which leaves one wave per picture row; `spectrum="code"` gives that,
for comparisons with published numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from samix.core.pairing import Pairing
from samix.core.shapes import Images, Lam, Mask, RandomSource, Size
from samix.core.words import suggest
from samix.mixups.base import Hints, Policy

Spectrum = Callable[[Size, int, float, RandomSource], Tensor]


def decay_scale(size: Size, decay: float) -> Float[Tensor, "H K"]:
    """max(f, 1 / max(H, W))^-decay of every frequency of a real image, divided by its largest value.

    Only the order of the pixels counts, and a scale of at most 1 cannot overflow.
    """
    rows, columns = torch.fft.fftfreq(size[0]), torch.fft.rfftfreq(size[1])
    frequency = torch.hypot(rows[:, None], columns[None])
    return (frequency * max(size)).clamp(min=1) ** -decay


def paper_spectrum(
    size: Size, count: int, decay: float, generator: RandomSource = None
) -> Complex[Tensor, "N H K"]:
    """s(r, k) (a + i b) with a, b ~ N(0, 1).

    Columns 0 and W / 2 are their own mirror images: the inverse transform averages their two halves, which
    would leave waves that run straight down half the power of those that run across.
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
    """s(0, k) a + i s(1, k) b in row k, only for the horizontal frequencies 0 and 1: what the code does."""
    scale = decay_scale(size, decay)[:2].T  # [K, 2]: the weights of the real and of the imaginary part
    noise = torch.randn(count, len(scale), 2, 2, generator=generator)
    return torch.view_as_complex(noise * scale[:, None])


SPECTRA: dict[str, Spectrum] = {"paper": paper_spectrum, "code": code_spectrum}


def keep_largest(grey: Float[Tensor, "N H W"], count: Tensor) -> Mask:
    """1 at the `count` largest pixels of each image, 0 elsewhere; ties never add pixels."""
    order = grey.flatten(1).argsort(dim=1, descending=True)
    kept = (torch.arange(order.shape[1], device=grey.device)[None] < count[:, None]).to(grey.dtype)
    return torch.zeros_like(kept).scatter(1, order, kept).view(-1, 1, *grey.shape[1:])


def fmix_mask(
    size: Size,
    lam: Lam,
    decay: float = 3.0,
    spectrum: str = "paper",
    generator: RandomSource = None,
) -> Mask:
    """The lam H W largest pixels of one low-frequency image per lam."""
    waves = SPECTRA[spectrum](size, len(lam), decay, generator)
    coin = torch.rand(len(lam), generator=generator) < 0.5
    grey = torch.fft.irfft2(waves.to(lam.device), s=size)  # frequencies that a spectrum leaves out are 0
    pixels = lam.detach() * (size[0] * size[1])
    return keep_largest(grey, torch.where(coin.to(lam.device), pixels.ceil(), pixels.floor()))


@dataclass(frozen=True, kw_only=True)
class FMix(Policy):
    """Irregular connected regions of the partner replace those of the first image."""

    decay: float = 3.0
    """Power of the frequency's decay; larger means smoother and larger regions."""
    spectrum: str = "paper"
    """The spectrum that the "paper" describes, or that of the official "code" for the paper's tables."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay <= 0:
            raise ValueError(f"mixup.decay must be positive, got {self.decay}.")
        if self.spectrum not in SPECTRA:
            raise ValueError(f"unknown mixup.spectrum {suggest(self.spectrum, SPECTRA)}")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One grey image per lam, on the device and in the dtype of the images."""
        size = x.shape[-2:]
        return fmix_mask(size, pairing.lam, self.decay, self.spectrum, generator).to(x)
