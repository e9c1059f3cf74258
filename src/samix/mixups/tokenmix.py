"""TokenMix (arXiv 2207.08409): blocks of tokens of the partner; labels follow the attention to what is shown.

1. lam is a constant, 1/2. The partner gets T = min(n, floor(n (1 - lam)) + extra) of the n tokens.
2. Until T tokens are set, blocks are drawn: area ~ U(1, missing), aspect ~ exp U(ln .3, -ln .3), sides
   h = round sqrt(area aspect) and w = round sqrt(area / aspect), both smaller than the grid's, at a uniform
   place. A block is used if it adds 1 to `missing` tokens; ten unused blocks in a row end the search.
3. x_mix = M x_i + (1 - M) x_j, where M = 1 keeps the tokens of the first image, and y = a y_i + b y_j with
   a = sum(A_i M), b = sum(A_j (1 - M)), each map A divided by its sum.

Checked against Sense-X/TokenMix. There A is a teacher's label map, here the class token's attention to the
clean image; there a and b need not sum to 1 (`normalized=False`). The code mixes every other batch by mixup:
`Switch(policies=(MixUp(alpha=0.8), TokenMix()))`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_fields, check_share
from samix.core.mixed import Mixed, blend_pairs, pair_parents
from samix.core.pairing import Pairing
from samix.core.shapes import AttentionMap, Images, Index, Lam, Mask, PerSample, RandomSource, Size
from samix.mixups.base import Hints, Policy, mean_of

EXTRA = 14 / 196
"""Tokens of the partner beyond n (1 - lam), as a share of all tokens."""
TRIES = 10
"""The search ends after so many unused blocks in a row."""

Grid = Size
Counts = Int[Tensor, "#B"]
Tokens = Bool[Tensor, "#B h w"]


def count_partner_tokens(lam: Lam, count: int) -> Counts:
    """T = min(n, floor(n (1 - lam)) + extra), how many of n tokens show the partner; 0 for lam = 1."""
    lam = lam.detach().cpu().double()
    wanted = (count * (1 - lam)).long() + round(count * EXTRA)
    return torch.where(lam < 1, wanted.clamp(max=count), 0)


def draw_single_tokens(grid: Grid, wanted: Counts, generator: RandomSource) -> Tokens:
    """Draws masks that are True at `wanted` tokens each, anywhere."""
    places = torch.rand(len(wanted), grid[0] * grid[1], generator=generator).argsort(dim=1).argsort(dim=1)
    return (places < wanted[:, None]).unflatten(1, grid)


def draw_blocks(grid: Grid, missing: Counts, generator: RandomSource) -> Tokens:
    """Draws one block per mask, of about 1 to `missing` tokens; empty if the block does not fit."""
    u = torch.rand(4, len(missing), dtype=torch.float64, generator=generator)
    area, aspect = 1 + u[0] * (missing - 1).clamp(min=0), torch.exp((2 * u[1] - 1) * math.log(0.3))
    height, width = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
    top, left = (u[2] * (grid[0] - height + 1)).floor(), (u[3] * (grid[1] - width + 1)).floor()

    rows, columns = (torch.arange(side)[None] for side in grid)
    in_rows = (rows >= top[:, None]) & (rows < (top + height)[:, None])
    in_columns = (columns >= left[:, None]) & (columns < (left + width)[:, None])
    fits = (height < grid[0]) & (width < grid[1])
    return in_rows[:, :, None] & in_columns[:, None, :] & fits[:, None, None]


def draw_block_tokens(grid: Grid, wanted: Counts, generator: RandomSource) -> Tokens:
    """Draws masks that are True at up to `wanted` tokens each, block by block, all masks at once."""
    tokens = torch.zeros(len(wanted), *grid, dtype=torch.bool)
    unused = torch.zeros_like(wanted)
    while True:
        missing = wanted - tokens.sum(dim=(1, 2))
        searching = (missing > 0) & (unused < TRIES)
        if not searching.any():
            return tokens
        new = draw_blocks(grid, missing, generator) & ~tokens
        added = new.sum(dim=(1, 2))
        used = searching & (added >= 1) & (added <= missing)
        tokens = tokens | (new & used[:, None, None])
        unused = torch.where(used, 0, unused + 1)


def tokens_to_mask(partner: Tokens, x: Images) -> Mask:
    """The mask of the images: 0 at pixels whose token shows the partner, 1 elsewhere."""
    return F.interpolate((~partner)[:, None].to(x), size=x.shape[-2:], mode="nearest")


def token_shares(partner: Tokens, attention: AttentionMap, index: Index) -> tuple[PerSample, PerSample]:
    """(a, b): sum of A_i where the first image is shown, sum of A_j where the partner is shown."""
    attention = attention.detach().float().nan_to_num()  # of a picture without numbers: none
    attention = attention / (attention.sum(dim=(1, 2), keepdim=True) + 1e-8)
    first = (attention * ~partner).sum(dim=(1, 2))
    second = (attention[index] * partner).sum(dim=(1, 2))
    # An untouched image keeps its whole label, whatever its map sums to.
    return torch.where(partner.any(dim=2).any(dim=1), first, 1), second


@dataclass(frozen=True, kw_only=True)
class TokenMix(Policy):
    """Replaces blocks of tokens by the partner's; labels are weighed by attention to the clean images."""

    alpha: float = 1.0
    """Not used, and must stay 1: lam is the constant `keep`."""
    keep: float = 0.5
    """lam: the share of tokens that the first image keeps, before the partner's extra tokens."""
    random: bool = False
    """Draw single tokens instead of blocks."""
    normalized: bool = True
    """Divide the label weights a and b by their sum; False (the original) goes with binary cross-entropy."""

    needs: ClassVar[tuple[str, ...]] = ("attention",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "mixup", "keep")
        rule = "must stay 1, because lam is the constant mixup.keep"
        check_fields(self, "mixup", ["alpha"], lambda value: value == 1, rule)

    @property
    def lam_weighs_labels(self) -> bool:
        """No: lam is a constant."""
        return False

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """The constant `keep`."""
        return torch.full((count,), float(self.keep))

    def draw_tokens(self, lam: Lam, attention: AttentionMap, generator: RandomSource) -> Tokens:
        """Draws where the partner is shown, on the grid of the attention map: one mask per lam."""
        grid = attention.shape[-2:]
        draw = draw_single_tokens if self.random else draw_block_tokens
        return draw(grid, count_partner_tokens(lam, grid[0] * grid[1]), generator).to(attention.device)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One mask of whole tokens per lam."""
        assert hints.attention is not None  # declared in `needs`
        return tokens_to_mask(self.draw_tokens(pairing.lam, hints.attention, generator), x)

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Mixes tokens; the label weight is each image's attention to the part of it that is shown."""
        attention, index = hints.attention, pairing.index
        assert attention is not None  # declared in `needs`
        partner = self.draw_tokens(pairing.lam, attention, generator)
        mask = tokens_to_mask(partner, x)
        x_mix = blend_pairs(x, index, mask)

        first, second = token_shares(partner, attention, index)
        total = first + second
        # If neither map has any attention on what is shown, labels are weighed by area.
        lam = torch.where(total > 0, first / total, mean_of(mask))
        if self.normalized:
            return Mixed(x_mix, mask, Pairing(lam, index))
        return Mixed(x_mix, mask, Pairing(lam, index), parents=pair_parents(index, first, second))
