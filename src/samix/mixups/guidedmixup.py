"""GuidedMixup (arXiv 2306.16612): pictures whose salient regions lie apart, blended by how salient each pixel
is.

    s = lam S_i / (lam S_i + (1 - lam) S_j),     y = mean(s) y_i + (1 - mean(s)) y_j

S is a saliency map, blurred (Gaussian, 7 x 7, sigma 3) and divided by its sum. Pairs form one cycle through
the batch: each picture's partner is the one, of those that are nobody's partner yet, whose S is farthest from
its own. lam is 1/2, where saliency alone decides, as in the paper; any other weighs the maps, so that lam = 1
keeps the picture.

Checked against 3neutronstar/GuidedMixup. There the cycle starts with the farthest pair of all, here with a
picture that is drawn; there some batches are not mixed (`prob` 0.5 for spectral saliency, 0.8 for gradients).
Pictures to look at keep the pairs that they are given.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from samix.core.checks import check_fields, check_words
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Index, Lam, Mask, RandomSource, Saliency
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.spectral import blur, spectral_residual


def as_density(saliency: Saliency) -> Saliency:
    """Saliency blurred and divided by its sum; the same everywhere where there is none."""
    smooth = blur(saliency.detach().float())
    total = smooth.sum(dim=(1, 2), keepdim=True)
    return torch.where(total > 0, smooth / total, 1 / saliency[0].numel())


def farthest_cycle(density: Saliency, start: int) -> Index:
    """A partner for every picture: from `start` on, the farthest that is nobody's partner yet; in the end the
    start.

    >>> places = torch.eye(4)[[0, 0, 2, 3]].view(4, 1, 4)  # two pictures are salient at the same place
    >>> farthest_cycle(places, start=0).tolist()
    [2, 3, 1, 0]
    """
    count, flat = len(density), density.flatten(1).cpu()
    distance = torch.cdist(flat, flat)
    order = [start]
    for _ in range(count - 1):
        distance[:, order[-1]] = -torch.inf
        order.append(int(distance[order[-1]].argmax()))
    cycle = torch.tensor(order)
    index = torch.empty_like(cycle)
    index[cycle] = cycle.roll(-1)
    return index


def guided_mask(first: Saliency, second: Saliency, lam: Lam) -> Mask:
    """lam S_i / (lam S_i + (1 - lam) S_j) at each pixel; lam where neither is salient."""
    lam = lam.view(-1, 1, 1)
    own, other = lam * first, (1 - lam) * second
    return torch.where(own + other > 0, own / (own + other), lam)[:, None]


@dataclass(frozen=True, kw_only=True)
class GuidedMixup(Policy):
    """Pairs pictures by their saliency and shows each where it is the more salient one."""

    alpha: float = 1.0
    """Not used, and must stay 1: lam is 1/2, and saliency decides."""
    saliency: Literal["spectral", "gradient"] = "spectral"
    """spectral (Guided-SR: the spectral residual, needs no network) or gradient (Guided-AP: of the loss)."""
    greedy: bool = True
    """Pair pictures whose salient regions lie apart; False keeps the drawn partners."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_words(self, "mixup")
        rule = "must stay 1, because lam is 1/2 and saliency decides"
        check_fields(self, "mixup", ["alpha"], lambda value: value == 1, rule)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the saliency is computed from."""
        return ("pixels",) if self.saliency == "spectral" else ("saliency",)

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """1/2, where saliency alone decides."""
        return torch.full((count,), 0.5)

    def density(self, hints: Hints) -> Saliency:
        """S of every picture."""
        if self.saliency == "spectral":
            assert hints.pixels is not None  # declared in `needs`
            return as_density(spectral_residual(hints.pixels))
        assert hints.saliency is not None
        return as_density(hints.saliency)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Pairs the pictures anew, where asked for, and blends them."""
        density, index = self.density(hints), pairing.index
        if self.greedy:
            start = int(torch.randint(len(x), (), generator=generator))
            index = farthest_cycle(density, start).to(index)
        return blend_by(density, x, Pairing(pairing.lam, index))

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Blends the pairs that are given."""
        return blend_by(self.density(hints), x, pairing)


def blend_by(density: Saliency, x: Images, pairing: Pairing) -> Mixed:
    """Every pair blended by both densities; the label weight is the mean of the mask."""
    lam, index = pairing.lam.to(density), pairing.index
    mask = guided_mask(density, density[index], lam).to(x)
    return Mixed(blend_pairs(x, index, mask), mask, Pairing(mean_of(mask), index))
