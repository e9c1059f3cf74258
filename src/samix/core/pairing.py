"""Who is mixed with whom, and how much: the only random choice every mixup shares."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from samix.core.checks import passes
from samix.core.devices import at_hand, send, within
from samix.core.shapes import Index, Lam, RandomSource


class Pairing(NamedTuple):
    """One decision for a whole batch: `lam` weighs the FIRST image of each pair, everywhere."""

    lam: Lam
    """[1]: one lam for the batch, or [B]: one lam per pair."""
    index: Index  # type: ignore[assignment]  # shadows tuple.index, which nobody needs here
    """[B]: the partner of image i is image index[i]; never i itself unless the batch is 1."""


MIN_ALPHA = 0.01
"""Below, both gamma variates behind a draw underflow and torch answers .5, the opposite of Beta's limit."""


def check_alpha(alpha: float, name: str = "alpha") -> None:
    """Refuses what lam ~ Beta(alpha, alpha) cannot be drawn with; torch itself draws .5 for not a number."""
    if not passes(lambda value: 0 < value < math.inf, alpha):
        raise ValueError(f"{name} must be positive, got {alpha!r}.")
    if alpha < MIN_ALPHA:
        raise ValueError(f"{name} must be at least {MIN_ALPHA}, where lam is nearly 0 or 1; got {alpha}.")


def draw_lam(count: int, alpha: float, generator: RandomSource = None) -> Lam:
    """`count` draws of lam ~ Beta(alpha, alpha) in float32, on the CPU so that any device agrees."""
    check_alpha(alpha)
    concentration = torch.full((count, 2), float(alpha), dtype=torch.float64)
    # The sampler behind torch.distributions.Beta, called directly because it takes a generator.
    # Its values are shares, so they lie in [0, 1].
    return torch._sample_dirichlet(concentration, generator)[:, 0].float()


def draw_derangement(count: int, generator: RandomSource = None) -> Index:
    """A random permutation of `count` items without fixed points (one cycle through all of them).

    A batch of 1 has no such permutation: its only image is its own partner.
    """
    order = torch.randperm(count, generator=generator)
    return torch.empty_like(order).scatter_(0, order, order.roll(1, 0))


def draw_pairing(
    batch: int,
    alpha: float,
    *,
    per_sample: bool = False,
    generator: RandomSource = None,
    device: torch.device | str | None = None,
) -> Pairing:
    """Draws lam ~ Beta(alpha, alpha), one per batch or per sample, and a partner for every image.

    >>> lam, index = draw_pairing(4, alpha=1.0)
    >>> lam.shape, sorted(index.tolist())  # one lam for the batch; every image is somebody's partner
    (torch.Size([1]), [0, 1, 2, 3])
    >>> bool((index == torch.arange(4)).any())  # but nobody's own
    False
    >>> draw_pairing(4, alpha=1.0, per_sample=True).lam.shape
    torch.Size([4])
    """
    lam = draw_lam(batch if per_sample else 1, alpha, generator)
    index = draw_derangement(batch, generator)
    return Pairing(send(lam, device), send(index, device))


def check_pairing(pairing: Pairing, count: int) -> None:
    """Refuses a pairing that is not for `count` images, or whose lam would extrapolate.

    Only a lam on the CPU is looked at: elsewhere that would cost a synchronisation.
    """
    lam, index = pairing.lam, pairing.index
    if not isinstance(lam, Tensor) or lam.shape not in ((1,), (count,)):
        raise ValueError(f"lam must be a tensor of shape [1] or [{count}], one value per pair; got {lam!r}.")
    if not isinstance(index, Tensor) or index.shape != (count,):
        raise ValueError(f"index must name the partner of each of {count} images; got {index!r}.")
    if at_hand(lam) and not within(lam, 0, 1):
        raise ValueError(f"lam must lie in [0, 1], got {lam.tolist()}.")
