"""Manifold Mixup (arXiv 1806.05236): Mixup of the output of a random layer.

For each batch one layer is drawn: the images, the end of stage 1 or the end of stage 2. Its output becomes
h = lam h_i + (1 - lam) h_j, and the rest of the network runs on that. Label weight: lam. Checked against
vikasverma1077/manifold_mixup, whose alpha is 2 on CIFAR and .2 on Tiny ImageNet.

Any tensor whose first dimension is the batch can be mixed, also the tokens of a ViT:
`ManifoldMix(layers=("input", "blocks.2", "blocks.5"))`.
"""

from dataclasses import dataclass

from samix.core.pairing import Pairing
from samix.core.shapes import Lam, RandomSource
from samix.mixups.latent import INPUT, LatentMixup, LayerOutput, MixedMaps


def interpolate(maps: LayerOutput, partner: LayerOutput, lam: Lam) -> LayerOutput:
    """lam h_i + (1 - lam) h_j for an output of any shape."""
    weight = lam.to(maps).view(-1, *[1] * (maps.ndim - 1))
    return weight * maps + (1 - weight) * partner


@dataclass(frozen=True, kw_only=True)
class ManifoldMix(LatentMixup):
    """Mixup at a random depth of the network."""

    alpha: float = 2.0
    """lam ~ Beta(alpha, alpha)."""
    layers: tuple[str, ...] = (INPUT, "layer1", "layer2")
    """Names of submodules, one drawn per batch; the word "input" stands for the images."""

    def mix_maps(self, maps: LayerOutput, pairing: Pairing, generator: RandomSource = None) -> MixedMaps:
        """Interpolates the output; draws nothing."""
        return MixedMaps(interpolate(maps, maps[pairing.index], pairing.lam), pairing.lam)
