"""PatchUp (arXiv 2006.07794): blocks of a layer's map are swapped (hard) or blended (soft) with a partner's.

Every channel and position becomes a seed with probability gamma', and every seed grows to a square of side b.
B is 1 inside these squares (the holes). With p_u = 1 - mean(B),

    gamma' = gamma h w / (b^2 (h - b + 1) (w - b + 1))
    hard:  h_mix = (1 - B) h_i + B h_j                             label weight p_u
    soft:  h_mix = (1 - B) h_i + B (lam h_i + (1 - lam) h_j)       label weight p_u + lam (1 - p_u)

If the layer "input" is drawn, the batch gets CutMix with its own lam ~ Beta(1, 1). Checked against
chandar-lab/PatchUp, which runs soft PatchUp with `prob=1.0, gamma=0.75`. Its loss for mixed batches is twice
ours; lam = 1 leaves an image untouched here, in hard PatchUp too.

Maps must be [B, C, h, w]. Maps [B, h, w, C] (Swin) look the same to the policy and would be mixed wrongly.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_fields, check_positive_share
from samix.core.pairing import Pairing, draw_lam
from samix.core.shapes import Images, Mask, RandomSource, Size
from samix.mixups.base import Hints
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.latent import INPUT, LatentMixup, LayerOutput, MixedMaps

CUTMIX_ALPHA = 1.0
"""lam ~ Beta(1, 1) of the CutMix at the layer "input"."""


def fitting_block(block: int, size: Size) -> int:
    """The side of the block; the largest odd side that fits if the block is larger than the map."""
    side = min(size)
    return min(block, side - 1 + side % 2)


def seed_rate(gamma: float, block: int, size: Size) -> float:
    """gamma', the probability of a seed: the blocks then cover about a share gamma of the map."""
    height, width = size
    return gamma * height * width / (block**2 * (height - block + 1) * (width - block + 1))


def draw_holes(
    shape: tuple[int, int, int, int],
    gamma: float,
    block: int,
    generator: RandomSource = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "N C h w"]:
    """Draws holes: 1 in squares around random seeds, 0 elsewhere, cut off at the border of the map."""
    size = shape[2], shape[3]
    block = fitting_block(block, size)
    seeds = torch.rand(shape, generator=generator) < seed_rate(gamma, block, size)
    return F.max_pool2d(seeds.to(device).float(), block, stride=1, padding=block // 2)


@dataclass(frozen=True, kw_only=True)
class PatchUp(LatentMixup):
    """Replaces blocks of a layer's map by those of the partner, or blends them."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha), the weight of the first image inside the blocks of soft PatchUp."""
    prob: float = 0.7
    """Probability per batch of mixing at all (per pair where lam is drawn per pair)."""
    layers: tuple[str, ...] = (INPUT, "maxpool", "layer1")
    """Names of submodules, one drawn per batch: "input" is CutMix, "maxpool" ends timm's ResNet stem."""
    hard: bool = True
    """Swap the blocks; False: blend them by lam (soft PatchUp)."""
    gamma: float = 0.5
    """Share of the map that blocks would cover if they never overlapped."""
    block: int = 7
    """Side of the blocks, odd."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_share(self, "mixup", "gamma")
        rule = "must be a positive odd number"
        check_fields(self, "mixup", ["block"], lambda value: value >= 1 and value % 2 == 1, rule)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask of CutMix, for the layer "input"."""
        drawn = draw_lam(len(pairing.lam), CUTMIX_ALPHA, generator).to(pairing.lam)
        lam = torch.where(pairing.lam == 1, pairing.lam, drawn)
        return cutmix_mask(x.shape[-2:], lam, generator).to(x)

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """Draws one set of holes per lam; hard PatchUp is soft PatchUp with lam = 0 inside the holes."""
        _, channels, height, width = self.check_map(maps).shape
        shape = (len(pairing.lam), channels, height, width)
        holes = draw_holes(shape, self.gamma, self.block, generator, maps.device)
        inside = (pairing.lam == 1).to(pairing.lam) if self.hard else pairing.lam
        keep = (1 - holes * (1 - inside.view(-1, 1, 1, 1))).to(maps)
        weight = 1 - holes.mean(dim=(1, 2, 3)) * (1 - inside)
        return MixedMaps(keep * maps + (1 - keep) * maps[pairing.index], weight)
