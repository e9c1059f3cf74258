"""PatchUp (arXiv 2006.07794): blocks of a layer's map are swapped (hard) or blended (soft) with a partner's.

Seeds fall on every channel and position with probability gamma' and grow to squares of side b: the holes B.
With p_u = 1 - mean(B),

    gamma' = gamma h w / (b^2 (h - b + 1) (w - b + 1))
    hard:  h_mix = (1 - B) h_i + B h_j                             label weight p_u
    soft:  h_mix = (1 - B) h_i + B (lam h_i + (1 - lam) h_j)       label weight p_u + lam (1 - p_u)

Where the layer "input" is drawn, the batch gets CutMix with a lam ~ Beta(1, 1) of its own. Checked
against chandar-lab/PatchUp, which runs soft PatchUp with `prob=1.0, gamma=0.75`.

Differs from the original:
- Its loss is p_u l(y_i) + (1 - p_u) l(t) + l(W) with t what the holes show and W = p_u y_i + (1 - p_u) t. As
  l is linear in its target, that is 2 l(W); here it is l(W). The factor acts like a learning rate that is
  doubled for mixed batches.
- lam = 1 leaves an image untouched, in hard PatchUp too, where lam is otherwise not used.
- Where lam is drawn per pair, so are the holes; the original shares one set of holes in the batch.
- gamma' follows the size of the map instead of being kept from the first batch, and a block larger than the
  map shrinks to the largest odd side that fits.
- No image is its own partner.

Maps are [B, C, h, w]; layers that give [B, h, w, C] (Swin) cannot be told from them and do not belong here.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.pairing import Pairing, draw_lam
from samix.core.shapes import Images, Mask, RandomSource, Size
from samix.mixups.base import Hints
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.latent import INPUT, LatentMixup, LayerOutput, MixedMaps

CUTMIX_ALPHA = 1.0


def fitting_block(block: int, size: Size) -> int:
    """The block's side, or the largest odd side that fits into the map."""
    side = min(size)
    return min(block, side - 1 + side % 2)


def seed_rate(gamma: float, block: int, size: Size) -> float:
    """gamma': about a share gamma of the map is covered by blocks that grow from seeds of this rate."""
    height, width = size
    return gamma * height * width / (block**2 * (height - block + 1) * (width - block + 1))


def draw_holes(
    shape: tuple[int, int, int, int],
    gamma: float,
    block: int,
    generator: RandomSource = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "N C h w"]:
    """1 in squares around random seeds, 0 elsewhere; squares are cut off at the border of the map."""
    size = shape[2], shape[3]
    block = fitting_block(block, size)
    seeds = torch.rand(shape, generator=generator) < seed_rate(gamma, block, size)
    return F.max_pool2d(seeds.to(device).float(), block, stride=1, padding=block // 2)


@dataclass(frozen=True, kw_only=True)
class PatchUp(LatentMixup):
    """Blocks of a layer's map come from the partner."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha), the weight of the first image inside the blocks of soft PatchUp."""
    prob: float = 0.7
    """Probability per batch of mixing at all (per pair where lam is drawn per pair)."""
    layers: tuple[str, ...] = (INPUT, "maxpool", "layer1")
    """Names of submodules, one drawn per batch: "input" is CutMix, "maxpool" ends timm's ResNet stem."""
    hard: bool = True
    """Blocks show the partner alone; otherwise the two blended by lam."""
    gamma: float = 0.5
    """Share of the map that blocks would cover if they never overlapped."""
    block: int = 7
    """Side of the blocks, odd."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.gamma <= 1:
            raise ValueError(f"mixup.gamma must lie in (0, 1], got {self.gamma}.")
        if self.block < 1 or self.block % 2 == 0:
            raise ValueError(f"mixup.block must be a positive odd number, got {self.block}.")

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """CutMix, for the layer "input"."""
        drawn = draw_lam(len(pairing.lam), CUTMIX_ALPHA, generator).to(pairing.lam)
        lam = torch.where(pairing.lam == 1, pairing.lam, drawn)
        return cutmix_mask(x.shape[-2:], lam, generator).to(x)

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """One set of holes per lam; hard is soft with lam = 0 inside the holes."""
        _, channels, height, width = self.checked_map(maps).shape
        shape = (len(pairing.lam), channels, height, width)
        holes = draw_holes(shape, self.gamma, self.block, generator, maps.device)
        inside = (pairing.lam == 1).to(pairing.lam) if self.hard else pairing.lam
        keep = (1 - holes * (1 - inside.view(-1, 1, 1, 1))).to(maps)
        weight = 1 - holes.mean(dim=(1, 2, 3)) * (1 - inside)
        return MixedMaps(keep * maps + (1 - keep) * maps[pairing.index], weight)
