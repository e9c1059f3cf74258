"""PuzzleMix (arXiv 2009.06962): blocks of both images, chosen by saliency and moved to where they are shown.

Pictures are cut into n x n blocks, n = 2^U with a uniform integer U. The shares s of the first image in
{0, 1/2, 1} minimise an energy (`energy`, `solver`) and become a mask; then the salient blocks of both images
are moved under their parts of the mask (`transport`): x_mix = s x~_i + (1 - s) x~_j. The label weight is the
mean of each mask; lam is used only in the prior of the energy. Constants as in snu-mllab/PuzzleMix.

Differs from the official code: one solver for the whole batch instead of a graph cut per picture, and n is
drawn among the numbers that divide the picture, which need not be square.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samix.core.checks import check_below_one, check_not_negative, check_positive
from samix.core.mixed import Mixed, blend
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Mask, RandomSource, Size
from samix.mixups.base import Hints, Policy, mean_of
from samix.mixups.puzzlemix.energy import Weights, block_saliency, largest_divisor, puzzle_energy
from samix.mixups.puzzlemix.solver import solve
from samix.mixups.puzzlemix.transport import move_blocks, transport_plan

SMALL = 32
"""Pictures with sides up to 32 pixels move blocks of 4 pixels, larger ones the blocks of the mask."""


def transport_side(block: int, size: int) -> int:
    """Side of the blocks that are moved: the largest divisor of the mask's block up to `size` pixels.

    If this divisor is 1, whole blocks of the mask are moved instead of single pixels.
    """
    divisor = largest_divisor(block, size)
    return divisor if divisor > 1 or size == 1 else block


@dataclass(frozen=True, kw_only=True)
class PuzzleMix(Policy):
    """Puts salient blocks of both images together."""

    min_exponent: int = 1
    """Fewest blocks per side, as a power of 2."""
    max_exponent: int = 4
    """Most blocks per side, as a power of 2."""
    beta: float = 1.2
    """Weight of smooth masks."""
    gamma: float = 0.5
    """Weight of smooth colours across blocks, relative to beta."""
    eta: float = 0.2
    """Weight of the prior, by which lam influences the mean of the mask."""
    transport: bool = True
    """Move salient blocks to where the mask shows them."""
    transport_epsilon: float = 0.8
    """Cost of moving a block across the picture, as a share of the picture's saliency."""
    transport_size: int = 0
    """Largest side in pixels of the blocks that are moved; 0: 4 up to 32 px, above the mask's blocks."""

    needs: ClassVar[tuple[str, ...]] = ("pixels", "saliency")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.min_exponent <= self.max_exponent:
            raise ValueError(
                "mixup.min_exponent must lie between 1 and mixup.max_exponent, "
                f"got {self.min_exponent} and {self.max_exponent}."
            )
        check_positive(self, "mixup", "beta", "transport_epsilon")
        check_below_one(self, "mixup", "gamma")
        check_not_negative(self, "mixup", "eta", "transport_size")

    def draw_blocks(self, size: Size, generator: RandomSource) -> int:
        """Draws how many blocks per side this batch is cut into."""
        counts = [2**exponent for exponent in range(self.min_exponent, self.max_exponent + 1)]
        fitting = [count for count in counts if size[0] % count == 0 and size[1] % count == 0]
        if not fitting:
            raise ValueError(
                f"PuzzleMix cuts pictures into {', '.join(map(str, counts))} blocks a side, but none of "
                f"these divides both {size[0]} and {size[1]} pixels; take sides divisible by {counts[0]}."
            )
        return fitting[int(torch.randint(len(fitting), (), generator=generator))]

    def find_mask(self, x: Images, pairing: Pairing, hints: Hints, blocks: int) -> Mask:
        """The mask of low energy for every image, with blocks x blocks blocks."""
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
        return self.find_mask(x, pairing, hints, self.draw_blocks(x.shape[-2:], generator))

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Finds masks, moves blocks and blends; `sources` moves targets per pixel like the images."""
        if not self.transport:
            return super().mix(x, pairing, hints, generator)
        assert hints.saliency is not None  # declared in `needs`
        size = x.shape[-2:]
        blocks = self.draw_blocks(size, generator)
        mask = self.find_mask(x, pairing, hints, blocks)

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
