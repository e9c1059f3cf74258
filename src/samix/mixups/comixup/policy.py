"""Co-Mixup (arXiv 2102.03065): the images of a batch are mixed together, not in pairs.

The batch is cut into parts of 20 images. Each part makes as many outputs as it has images; every block of a
4 x 4 grid of an output shows one image of the part, or two half and half:

    x_o = sum_k nearest-up(z_o)_k x_k,    y_o = sum_k mean(z_o)_k y_k

Unary cost c_k(b) = -s_k(b) - eta log d_k: s_k is the image's saliency pooled to the blocks (sum 1), and one
d ~ Dirichlet(alpha) per part says how much of each image is wanted. Neighbours should agree (beta), and no
image should be used too often (gamma, tau), where the use of images that are salient elsewhere counts a
little as well (A, omega). `solver` finds z.

Differs from the original (github.com/snu-mllab/Co-Mixup): all parts are solved at once by ICM on a
checkerboard instead of graph cuts, and sizes need not be divisible by the number of blocks.

lam only says whether an image is mixed at all (lam = 1: untouched); how much of each image is shown follows
from the Dirichlet draw. Output o is not tied to image o, so the `pairing` that is returned is a summary: lam
is the share of image o itself (often 0), index its strongest other parent. Labels come from `parents`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_at_least, check_not_negative, check_share
from samix.core.mixed import Mixed, Parents
from samix.core.pairing import Pairing
from samix.core.shapes import Images, RandomSource, Saliency, Size
from samix.mixups.base import Hints, Policy
from samix.mixups.comixup.solver import FORBIDDEN, Problem, make_grid, solve

Shares = Float[Tensor, "B P h w"]  # weight of each image of the part in each block of each output


def split_into_parts(values: Tensor, part: int) -> Tensor:
    """Reshapes [B, ...] to [parts, part, ...]; the last part is padded with zeros."""
    missing = -len(values) % part
    padded = torch.cat([values, values.new_zeros(missing, *values.shape[1:])])
    return padded.unflatten(0, (-1, part))


def pooled_saliency(saliency: Saliency, blocks: int) -> Float[Tensor, "B h w"]:
    """Saliency of each block; sums to 1 per image, 0 everywhere for a map of zeros."""
    pooled = F.adaptive_avg_pool2d(saliency.float(), blocks).nan_to_num(0, 0, 0)  # of a spoilt image: none
    return pooled / pooled.sum(dim=(1, 2), keepdim=True).clamp_min(1e-30)


def salient_positions(saliency: Saliency) -> Float[Tensor, "B 2"]:
    """Row and column of the 8 x 8 window with the highest mean saliency."""
    window = min(8, saliency.shape[1]), min(8, saliency.shape[2])
    means = F.avg_pool2d(saliency.float()[:, None], window, stride=1)[:, 0]
    best = means.flatten(1).argmax(dim=1)
    return torch.stack([best // means.shape[2], best % means.shape[2]], dim=1).float()


def compatibility(
    positions: Float[Tensor, "G K 2"], real: Float[Tensor, "G K"], omega: float
) -> Float[Tensor, "G K K"]:
    """A = (1 - omega) I + omega m D / sum(D).

    D are the L1 distances between the salient regions of the m real images (those that are not padding).
    """
    distance = (
        (positions[:, :, None] - positions[:, None]).abs().sum(dim=3) * real[:, :, None] * real[:, None]
    )
    count, total = real.sum(dim=1).view(-1, 1, 1), distance.sum(dim=(1, 2), keepdim=True)
    identity = torch.eye(real.shape[1]).to(distance)
    return (1 - omega) * identity + omega * count * distance / total.clamp_min(1e-30)


def draw_wanted(batch: int, part: int, alpha: float, generator: RandomSource) -> Float[Tensor, "G K"]:
    """Draws d ~ Dirichlet(alpha, ..., alpha) over the images of each part; 0 on padding."""
    amount = torch._standard_gamma(torch.full((batch,), alpha, dtype=torch.float64), generator)
    amount = split_into_parts(amount, part)
    return (amount / amount.sum(dim=1, keepdim=True).clamp_min(1e-300)).float()


def draw_start(
    size: Int[Tensor, "G"], part: int, cells: int, generator: RandomSource
) -> Float[Tensor, "G K n K"]:
    """Draws a start: a uniformly random image of the part in every block of its outputs; 0 on padding."""
    chance = torch.rand(len(size), part, cells, generator=generator, dtype=torch.float64)
    label = (chance * size.view(-1, 1, 1)).long()
    real = torch.arange(part) < size[:, None]
    return F.one_hot(label, part) * real[..., None, None].float()


def upsample(field: Shaped[Tensor, "B N h w"], size: Size) -> Shaped[Tensor, "B N H W"]:
    """Enlarges by nearest sampling; the number of blocks need not divide the size."""
    rows, columns = (
        torch.arange(side, device=field.device) * count // side
        for side, count in zip(size, field.shape[2:], strict=True)
    )
    return field[:, :, rows][..., columns]


def gather_blocks(x: Images, z: Shares, index: Int[Tensor, "B P"]) -> Images:
    """x_o = sum_k nearest-up(z_o)_k x_k; a block shows at most two images."""
    weight, position = z.topk(min(2, z.shape[1]), dim=1)
    parent = index[:, :, None, None].expand(-1, -1, *z.shape[2:]).gather(1, position)
    weight, parent = (upsample(field, x.shape[-2:]) for field in (weight.to(x), parent))
    mixed = torch.zeros_like(x)
    for n in range(weight.shape[1]):
        share, source = weight[:, n, None], x.gather(0, parent[:, n, None].expand_as(x))
        # Where a block shows one image, the second is any: 0 times its pixels may be no number.
        mixed = mixed + torch.where(share > 0, share * source, 0.0)
    return mixed


def pixel_shares(z: Shares, size: Size) -> Float[Tensor, "B P"]:
    """The share of each output's pixels that each image of the part fills."""
    rows, columns = (
        (torch.arange(side) * count // side).bincount(minlength=count).to(z)
        for side, count in zip(size, z.shape[2:], strict=True)
    )
    return (z * rows[:, None] * columns).sum(dim=(2, 3)) / (size[0] * size[1])


def summarise(parents: Parents, pairing: Pairing, own: Int[Tensor, "B 1"]) -> Pairing:
    """A pairing with lam = the share of the image itself, index = its strongest other parent.

    An image without other parents keeps the partner that it was given.
    """
    lam = parents.share.gather(1, own)[:, 0]
    others = parents.share.scatter(1, own, -1.0).argmax(dim=1, keepdim=True)
    strongest = parents.index.gather(1, others)[:, 0]
    return Pairing(lam, torch.where(lam == 1, pairing.index.to(strongest), strongest))


@dataclass(frozen=True, kw_only=True)
class CoMixup(Policy):
    """Every block of an output shows the image of the part that saliency, smoothness and diversity favour."""

    alpha: float = 2.0
    """How much of each image of a part is wanted ~ Dirichlet(alpha, ..., alpha)."""
    part: int = 20
    """How many images are mixed together: the batch is cut into parts of this size."""
    blocks: int = 4
    """Blocks per side of an output."""
    beta: float = 0.32
    """Cost of neighbouring blocks that show different images."""
    gamma: float = 1.0
    """Cost of using an image too often."""
    eta: float = 0.05
    """Weight of the Dirichlet draw."""
    tau: float = 0.83
    """How much of an image may be used before it costs; 1 is a whole image."""
    omega: float = 0.001
    """Weight of the distance between salient regions."""
    rounds: int = 4
    """How often all outputs are optimised in turn."""

    needs: ClassVar[tuple[str, ...]] = ("saliency",)
    masks_pairs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(2, self, "mixup", "part")
        check_at_least(1, self, "mixup", "blocks", "rounds")
        check_not_negative(self, "mixup", "beta", "gamma", "eta", "tau")
        check_share(self, "mixup", "omega")

    @torch.no_grad()
    def find_shares(self, saliency: Saliency, generator: RandomSource) -> Shares:
        """Draws d and the start, then finds z of every output, all parts at once."""
        batch, part, cells = len(saliency), min(self.part, len(saliency)), self.blocks**2
        wanted = draw_wanted(batch, part, self.alpha, generator)
        real = split_into_parts(torch.ones(batch), part)
        start = draw_start(real.sum(dim=1).long(), part, cells, generator)
        wanted, real, start = (drawn.to(saliency.device) for drawn in (wanted, real, start))

        salient = split_into_parts(pooled_saliency(saliency, self.blocks).flatten(1), part).mT  # [G, n, K]
        unary = -salient - self.eta / cells * (wanted + 1e-8).log()[:, None]
        unary = torch.where(real.bool()[:, None], unary, FORBIDDEN)
        far = compatibility(split_into_parts(salient_positions(saliency), part), real, self.omega)
        grid = make_grid(self.blocks, saliency.device)
        weights = (self.beta / cells, self.gamma / cells, self.tau * cells)
        with torch.autocast(saliency.device.type, enabled=False):  # costs differ by less than half precision
            z = solve(Problem(unary, far, real.bool(), grid, *weights), start, self.rounds)
        return z.flatten(0, 1)[:batch].mT.unflatten(2, (self.blocks, self.blocks))

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Mixes the images of each part; an image with lam = 1 stays as it is."""
        saliency = hints.saliency
        assert saliency is not None  # declared in `needs`
        batch, part, size = len(x), min(self.part, len(x)), x.shape[-2:]
        image = torch.arange(batch, device=x.device)[:, None]  # [B, 1]
        own, members = image % part, torch.arange(part, device=x.device)
        untouched = (pairing.lam == 1).to(x.device).view(-1, 1, 1, 1)
        itself = (own == members).float()[..., None, None]
        z = itself
        if not untouched.all():  # else nothing is mixed, and there is nothing to solve
            z = torch.where(untouched, itself, self.find_shares(saliency, generator))

        parents = Parents((image - own + members).clamp(max=batch - 1), pixel_shares(z, size))
        shown = z.gather(1, own[..., None, None].expand(-1, -1, *z.shape[2:]))
        mask = upsample(shown, size).to(x)
        return Mixed(gather_blocks(x, z, parents.index), mask, summarise(parents, pairing, own), parents)
