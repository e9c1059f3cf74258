"""AugMix (arXiv 1912.02781): a picture mixed with augmented copies of itself; labels are not mixed.

x_aug = lam x + (1 - lam) sum_c w_c chain_c(x), with w ~ Dirichlet(alpha, ..., alpha) over `width` chains. A
chain is 1 to `depth_max` operations on the 8-bit picture, each drawn uniformly and with a level of its own.
lam weighs the clean picture, as everywhere in samix; the paper's m is 1 - lam. Partners are drawn but not
used. Source: google-research/augmix (severity 3 on CIFAR, 1 on ImageNet).

Differs from the original: chains run on the normalised batch, not in the loader. Their result is normalised
like x; the policy does not know mean and std, so `affine_fit` recovers them from the pixels and x.

The policy makes one x_aug; the consistency loss between two of them is added by `methods/around/mixing.py`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from samix.core.checks import check_at_least, check_fields, check_not_negative
from samix.core.images import to_bytes
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Mask, RandomSource
from samix.mixups.augmix.operations import OPERATIONS, SHADES
from samix.mixups.base import Hints, Policy

WEAKEST = 0.1
"""The lowest level of an operation."""


class Chains(NamedTuple):
    """The chains of each picture of a batch, on the CPU: `width` chains of up to `depth` operations."""

    share: Float[Tensor, "B width"]
    """The weight of each chain; sums to 1."""
    operation: Int[Tensor, "B width depth"]
    """Positions in `OPERATIONS`; -1 where a chain has ended."""
    level: Float[Tensor, "B width depth"]
    """The strength of each operation; its sign is the direction of moves."""


def draw_chains(
    batch: int,
    *,
    width: int = 3,
    depth_max: int = 3,
    severity: float = 3.0,
    alpha: float = 1.0,
    generator: RandomSource = None,
) -> Chains:
    """Draws weights, lengths, operations and levels U(.1, severity) with random signs."""
    shape = (batch, width, depth_max)
    concentration = torch.full((batch, width), float(alpha), dtype=torch.float64)
    share = torch._sample_dirichlet(concentration, generator).float()
    depth = torch.randint(1, depth_max + 1, (batch, width, 1), generator=generator)
    operation = torch.randint(len(OPERATIONS), shape, generator=generator)
    level = WEAKEST + (severity - WEAKEST) * torch.rand(shape, generator=generator)
    sign = 1 - 2 * torch.randint(2, shape, generator=generator)
    return Chains(share, operation.masked_fill(torch.arange(depth_max) >= depth, -1), sign * level)


@torch.no_grad()
def apply_chains(pixels: Images, chains: Chains) -> Images:
    """sum_c w_c chain_c(pixels) in [0, 1]; each operation runs on all pictures that drew it at once."""
    width, depth = chains.operation.shape[1:]
    operation, level = chains.operation.view(-1, depth), chains.level.view(-1, depth)
    copies = to_bytes(pixels).repeat_interleave(width, dim=0)  # [B width, 3, H, W]
    for step in range(depth):
        for number, change in enumerate(OPERATIONS):
            rows = (operation[:, step] == number).nonzero().flatten()  # on the CPU: no synchronisation
            if len(rows):
                strength, rows = level[rows, step].to(pixels.device), rows.to(pixels.device)
                copies[rows] = change(copies[rows], strength)
    share = chains.share.to(pixels.device)[..., None, None, None] / (SHADES - 1)
    return (share * copies.unflatten(0, (-1, width))).sum(dim=1)


@torch.no_grad()
def affine_fit(pixels: Images, x: Images) -> tuple[Float[Tensor, "1 c 1 1"], Float[Tensor, "1 c 1 1"]]:
    """(scale, shift) of each channel with x = scale * pixels + shift, by least squares over the batch.

    Pixels at 0 or 1 may have been clamped, so they count only if there are no others; what is not finite does
    not count. In a channel with one shade the scale is unknown and set to 1. Of large pictures only every few
    rows and columns are used.
    """
    kept, wide = torch.promote_types(x.dtype, torch.float32), torch.float64
    if x.device.type == "mps":
        wide = torch.float32  # has no float64
    rows, columns = (max(side // 64, 1) for side in x.shape[-2:])
    pixels, x = (images[..., ::rows, ::columns].to(wide) for images in (pixels, x))
    finite = x.isfinite() & pixels.isfinite()
    pixels, x = (torch.where(finite, images, 0.0) for images in (pixels, x))
    weight = torch.where((pixels > 0) & (pixels < 1), 1.0, 1e-9).to(wide) * finite
    weight = weight / weight.sum(dim=(0, 2, 3), keepdim=True).clamp(min=1e-30)

    def mean(values: Tensor) -> Tensor:
        return (weight * values).sum(dim=(0, 2, 3), keepdim=True)

    pixels_mean, x_mean = mean(pixels), mean(x)
    centred = pixels - pixels_mean
    variance, covariance = mean(centred.square()), mean(centred * (x - x_mean))
    known = variance > 1e4 * torch.finfo(wide).eps ** 2  # more than rounding of the mean can cause
    scale = torch.where(known, covariance / torch.where(known, variance, 1), 1)
    return scale.to(kept), (x_mean - scale * pixels_mean).to(kept)


@dataclass(frozen=True, kw_only=True)
class AugMix(Policy):
    """Mixes each picture with a mixture of augmented copies of itself."""

    alpha: float = 1.0
    """Parameter of Beta (the weight of the clean picture) and of Dirichlet (the weights of the chains)."""
    per_sample: bool = True
    """Draw one lam per picture (the original) instead of one per batch."""
    severity: float = 3.0
    """Strongest level of an operation: 3 on CIFAR, 1 on ImageNet."""
    width: int = 3
    """How many chains are mixed."""
    depth_max: int = 3
    """Largest number of operations in a chain."""
    jsd_weight: float = 12.0
    """Weight of the consistency loss; 0 trains on one augmented view with cross-entropy alone."""

    needs: ClassVar[tuple[str, ...]] = ("pixels",)
    masks_pairs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = f"must lie in [{WEAKEST}, 10]"
        check_fields(self, "mixup", ["severity"], lambda value: WEAKEST <= value <= 10, rule)
        check_at_least(1, self, "mixup", "width", "depth_max")
        check_not_negative(self, "mixup", "jsd_weight")

    @property
    def consistency(self) -> float:
        """The weight of the consistency loss."""
        return self.jsd_weight

    @property
    def lam_weighs_labels(self) -> bool:
        """No: labels are not mixed."""
        return False

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """All ones: the partner is not shown, and labels are not mixed."""
        return x.new_ones(()).expand(len(pairing.lam), 1, *x.shape[-2:])

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """One augmented view of each picture; the gradient reaches x through its clean part only."""
        assert hints.pixels is not None  # declared in `needs`
        chains = draw_chains(
            len(x),
            width=self.width,
            depth_max=self.depth_max,
            severity=self.severity,
            alpha=self.alpha,
            generator=generator,
        )
        scale, shift = affine_fit(hints.pixels, x)
        augmented = (scale * apply_chains(hints.pixels, chains) + shift).to(x.dtype)
        clean = pairing.lam.to(x).view(-1, 1, 1, 1)
        view = clean * x + (1 - clean) * augmented
        mask = self.mask(x, pairing, hints, generator)
        return Mixed(view, mask, Pairing(torch.ones_like(pairing.lam), pairing.index))
