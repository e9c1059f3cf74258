"""PuzzleMix (arXiv 2009.06962): blocks of both images, chosen by saliency, and moved to where they show.

A batch is cut into n x n blocks, n = 2^U with U uniform. The shares s of the first image in {0, 1/2, 1}
minimise `puzzle_energy` and become a mask; `puzzle_transport` then moves the salient blocks of both
images under their parts of the mask: x_mix = s x~_i + (1 - s) x~_j. The label weight is the mean of each
mask; lam enters through the prior of the energy only. Constants as in snu-mllab/PuzzleMix.

Differs from the official code: one batched solver instead of a graph cut per picture (`puzzle_solver`);
n is drawn among those that divide the picture; pictures may be oblong; lam = 1 keeps the first image.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samix.core.mixed import Mixed, blend
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.puzzlemix.energy import Weights, block_saliency, largest_divisor, puzzle_energy
from samix.mixups.puzzlemix.solver import solve
from samix.mixups.puzzlemix.transport import move_blocks, transport_plan

SMALL = 32
"""Pictures up to so many pixels move blocks of 4 pixels (CIFAR), larger ones those of the mask."""


def transport_side(block: int, size: int) -> int:
    """Side of the blocks that are moved: a divisor of the mask's block, at most `size` pixels.

    A block that has no such divisor but 1 is moved as a whole: single pixels are no pieces of a puzzle.
    """
    divisor = largest_divisor(block, size)
    return divisor if divisor > 1 or size == 1 else block


@dataclass(frozen=True, kw_only=True)
class PuzzleMix(Policy):
    """Salient blocks of both images, fitted together."""

    min_exponent: int = 1
    """The fewest blocks a side, as a power of 2."""
    max_exponent: int = 4
    """The most blocks a side, as a power of 2."""
    beta: float = 1.2
    """Weight of smooth masks."""
    gamma: float = 0.5
    """Weight of smooth colours across blocks, relative to beta."""
    eta: float = 0.2
    """Weight of the prior by which lam sets the mask's mean."""
    transport: bool = True
    """Move salient blocks to where the mask shows them."""
    transport_epsilon: float = 0.8
    """The price of moving a block across the picture, in parts of the picture's saliency."""
    transport_size: int = 0
    """Largest side in pixels of the blocks that are moved; 0: 4 up to 32 px, the mask's blocks above."""

    needs: ClassVar[tuple[str, ...]] = ("pixels", "saliency")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.min_exponent <= self.max_exponent:
            raise ValueError(
                "mixup.min_exponent must lie between 1 and mixup.max_exponent, "
                f"got {self.min_exponent} and {self.max_exponent}."
            )
        if self.beta <= 0:
            raise ValueError(f"mixup.beta must be positive, got {self.beta}.")
        if not 0 <= self.gamma < 1:
            raise ValueError(f"mixup.gamma must lie in [0, 1), got {self.gamma}.")
        if self.transport_epsilon <= 0:
            raise ValueError(f"mixup.transport_epsilon must be positive, got {self.transport_epsilon}.")
        for name in ("eta", "transport_size"):
            if getattr(self, name) < 0:
                raise ValueError(f"mixup.{name} must not be negative, got {getattr(self, name)}.")

    def draw_blocks(self, size: Size, generator: RandomSource) -> int:
        """How many blocks a side this batch is cut into."""
        counts = [2**exponent for exponent in range(self.min_exponent, self.max_exponent + 1)]
        fitting = [count for count in counts if size[0] % count == 0 and size[1] % count == 0]
        if not fitting:
            raise ValueError(
                f"PuzzleMix cuts pictures into {', '.join(map(str, counts))} blocks a side, but none of "
                f"these divides both {size[0]} and {size[1]} pixels; take sides divisible by {counts[0]}."
            )
        return fitting[int(torch.randint(len(fitting), (), generator=generator))]

    def cut(self, x: Images, pairing: Pairing, hints: Hints, blocks: int) -> Mask:
        """One mask of blocks x blocks blocks per image."""
        assert hints.pixels is not None and hints.saliency is not None  # declared in `needs`
        weights = Weights(self.beta, self.gamma, self.eta)
        energy = puzzle_energy(hints.pixels, hints.saliency, pairing.index, pairing.lam, blocks, weights)
        shares = solve(energy)[:, None].to(x)
        shares = shares.masked_fill((pairing.lam >= 1).view(-1, 1, 1, 1), 1.0)
        rows, columns = x.shape[-2] // blocks, x.shape[-1] // blocks
        return shares.repeat_interleave(rows, dim=2).repeat_interleave(columns, dim=3)

    def moved_sides(self, size: Size, blocks: int) -> tuple[int, int]:
        """Height and width of the blocks that are moved."""
        most = self.transport_size or (4 if max(size) <= SMALL else max(size))
        return transport_side(size[0] // blocks, most), transport_side(size[1] // blocks, most)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """Shares of the first image in {0, 1/2, 1}, one mask per image."""
        return self.cut(x, pairing, hints, self.draw_blocks(x.shape[-2:], generator))

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Cuts, moves and blends; `sources` moves per-pixel targets as the images were."""
        if not self.transport:
            return super().mix(x, pairing, hints, generator)
        assert hints.saliency is not None  # declared in `needs`
        size = x.shape[-2:]
        blocks = self.draw_blocks(size, generator)
        mask = self.cut(x, pairing, hints, blocks)

        height, width = self.moved_sides(size, blocks)
        grid = size[0] // height, size[1] // width
        saliency, shares = block_saliency(hints.saliency, grid), mask[:, 0, ::height, ::width].float()
        plan = transport_plan(saliency, shares, self.transport_epsilon)
        partner_plan = transport_plan(saliency[pairing.index], 1 - shares, self.transport_epsilon)

        def sources(planes: Tensor) -> tuple[Tensor, Tensor]:
            partners = planes[pairing.index]
            return move_blocks(planes, plan, grid), move_blocks(partners, partner_plan, grid)

        first, second = sources(x)
        weight = Pairing(mean_of(mask), pairing.index)
        return Mixed(blend(first, second, mask), mask, weight, sources=sources)
