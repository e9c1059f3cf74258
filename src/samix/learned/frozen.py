"""SAMix-P (Sec. 3.2, the pre-trained pipeline): a Mixer that was trained before, as a policy like any other.

The frozen encoder looks at pictures in a size of its own, without gradients; masks have the pictures' size.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.core.shapes import Images, Maps, Mask, RandomSource, Size, Stats
from samix.learned.mixer import Adjusting, Mixer
from samix.mixups.base import Hints, Policy
from samix.nn.encoder import Encoder
from samix.nn.folding import fold_norms


class Painter(nn.Module):
    """A Mixer and the encoder that it reads, both frozen for good: pixels in [0, 1] -> masks."""

    mean: Tensor
    std: Tensor

    def __init__(self, encoder: Encoder, mixer: Mixer, stats: Stats, size: int) -> None:
        """`stats` is the normalisation that the encoder knows, `size` the short side of what it looks at.

        The encoder is the painter's from now on: its batch norms are folded away.
        """
        super().__init__()
        self.encoder, self.mixer, self.stats, self.size = encoder, mixer, stats, size
        for name, values in stats._asdict().items():
            self.register_buffer(name, torch.tensor(values).view(1, -1, 1, 1), persistent=False)
        self.eval().requires_grad_(False)
        encoder.network = fold_norms(encoder.network, ramp(size).to(next(encoder.parameters())))
        encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # faster, mostly

    def train(self, mode: bool = True) -> "Painter":
        """Stays in eval mode."""
        return super().train(False)

    def look(self, pixels: Images) -> Maps:
        """The encoder's maps of pictures, whose short side becomes `size`."""
        scale = self.size / min(pixels.shape[-2:])
        if scale != 1:
            sides = [max(round(scale * side), 1) for side in pixels.shape[-2:]]
            pixels = F.interpolate(pixels, sides, mode="bilinear", align_corners=False, antialias=scale < 1)
        return self.encoder.maps((pixels - self.mean.to(pixels)) / self.std.to(pixels))

    @torch.no_grad()
    def forward(self, pixels: Images, pairing: Pairing, size: Size) -> Mask:
        """The Mixer's masks, before they are adjusted to lam."""
        kind = next(self.parameters())
        with torch.autocast(kind.device.type, enabled=False):
            return self.mixer(self.look(pixels.to(kind)), pairing, size)


def ramp(size: int) -> Images:
    """One picture [1, 3, size, size] that runs from -1 to 1: something to see, and nothing drawn."""
    return torch.linspace(-1, 1, 3 * size * size).view(1, 3, size, size)


def as_colours(pixels: Images) -> Float[Tensor, "B 3 H W"]:
    """The pixels of three channels; grey ones three times."""
    if pixels.shape[1] not in (1, 3):
        raise ValueError(
            f"a trained Mixer looks at pictures with 1 or 3 channels; got {pixels.shape[1]}. "
            "Take a policy that does not look: cutmix, fmix, ..."
        )
    return pixels.expand(-1, 3, -1, -1)


@dataclass(frozen=True, kw_only=True)
class FrozenMixer(Policy):
    """Masks of a frozen Mixer, adjusted to lam."""

    painter: Painter = field(repr=False, compare=False)
    """What paints; it moves to where the images are."""
    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""
    per_sample: bool = True
    """Draw one lam per pair instead of one per batch."""
    adjusting: Adjusting = field(default_factory=lambda: Adjusting(rule="shift"))
    """How masks are given the mean lam."""

    needs: ClassVar[tuple[str, ...]] = ("pixels",)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The learned masks; plain Mixup where lam is so near to 0 or 1 that there is nothing to decide."""
        assert hints.pixels is not None  # declared in `needs`
        lam, pixels = pairing.lam.to(x.device), as_colours(hints.pixels)
        if self.painter.mean.device != x.device:
            self.painter.to(x.device)
        painted = self.painter(pixels, Pairing(lam, pairing.index), x.shape[-2:])
        learned = self.adjusting.adjust(painted, lam)
        extreme = torch.minimum(lam, 1 - lam) <= max(self.adjusting.lam_margin, 1e-3)
        return torch.where(extreme.view(-1, 1, 1, 1), lam.view(-1, 1, 1, 1), learned).to(x)
