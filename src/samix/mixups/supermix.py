"""SuperMix (arXiv 2003.05034): masks with which a teacher recognises both images of a pair.

A frozen teacher T gives each image a class c; for the mixture it should answer
q = lam onehot(c_i) + (1 - lam) onehot(c_j). The variables are two coarse maps per pair, 0 at the start (an
equal blend):

    mask = sigma(up map_i) / (sigma(up map_i) + sigma(up map_j)),  x_mix = mask x_i + (1 - mask) x_j
    L = KL(q || T(x_mix)) + sparsity mean(mask (1 - mask))
    maps <- maps - clamp(L / <g, g'>, 1e-4, 2000) g',  g = dL/d maps, g' = g blurred by a Gaussian

A pair is done, and no longer changed, as soon as T's two most probable classes are c_i and c_j (for a pair of
one class: as soon as the most probable class is that class).

Differs from the original (github.com/alldbi/SuperMix), which writes finished mixtures to disk and throws the
others away: here a batch is mixed during training, and the label weight is mean(mask), done or not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.checks import check_at_least, check_not_negative, check_positive, check_positive_share
from samix.core.mixed import blend
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Index, Labels, Logits, Mask, PerSample, RandomSource, Size
from samix.mixups.base import Hints, Policy

Teacher = Callable[[Tensor], Tensor]
CoarseMaps = Float[Tensor, "B 2 w w"]


class Goal(NamedTuple):
    """Pairs of images, and what the teacher should answer for their mixtures."""

    x: Images
    partner: Images
    own: Labels
    """Class of each image, from the teacher."""
    other: Labels
    """Class of its partner."""
    lam: PerSample

    def select(self, pairs: Index) -> "Goal":
        """The goal of these pairs only."""
        return Goal(*(value[pairs] for value in self))

    def target(self, classes: int) -> Float[Tensor, "B K"]:
        """q = lam onehot(c_i) + (1 - lam) onehot(c_j)."""
        own, other = F.one_hot(self.own, classes), F.one_hot(self.other, classes)
        return self.lam[:, None] * own + (1 - self.lam[:, None]) * other

    def reached(self, logits: Logits) -> Bool[Tensor, "B"]:
        """Whether the two most probable classes are those of the pair, in any order."""
        first, second = logits.topk(2, dim=1).indices.unbind(dim=1)
        straight = (first == self.own) & (second == self.other)
        crossed = (first == self.other) & (second == self.own)
        return straight | crossed | ((first == self.own) & (self.own == self.other))


def maps_to_mask(maps: CoarseMaps, size: Size) -> Mask:
    """sigma(map_i) / (sigma(map_i) + sigma(map_j)), with both maps upsampled bilinearly."""
    shown = F.logsigmoid(F.interpolate(maps, size=size, mode="bilinear", align_corners=False))
    return (shown[:, :1] - shown[:, 1:]).sigmoid()  # the same quotient, without 0 / 0 for low maps


def blur(maps: CoarseMaps, sigma: float) -> CoarseMaps:
    """Blurs by a Gaussian of `sigma` cells with about 5 sigma weights per axis; zeros outside the map.

    The number of weights is odd: an even kernel would shift the maps by half a cell.
    """
    half = int(5 * sigma) // 2
    taps = torch.exp(-(torch.arange(-half, half + 1).to(maps) ** 2) / (2 * sigma**2))
    taps = taps / taps.sum()
    with torch.autocast(maps.device.type, enabled=False):  # small gradients would vanish in half precision
        planes = F.conv2d(maps.flatten(0, 1)[:, None], (taps[:, None] * taps)[None, None], padding=half)
    return planes.view_as(maps)


def newton_step(loss: PerSample, gradient: CoarseMaps, sigma: float) -> CoarseMaps:
    """clamp(L / <g, g'>, 1e-4, 2000) g': the step that is subtracted from the maps."""
    blurred = blur(gradient, sigma)
    slope = (gradient * blurred).sum(dim=(1, 2, 3))
    length = torch.where(slope > 0, loss / slope, 0.0).clamp(1e-4, 2000)
    step = length.view(-1, 1, 1, 1) * blurred
    # A pair for which the teacher has no numbers stays an equal blend.
    return torch.where(slope.isfinite().view(-1, 1, 1, 1), step, 0.0)


@torch.enable_grad()
def ask_teacher(
    teacher: Teacher, goal: Goal, maps: CoarseMaps, sparsity: float
) -> tuple[PerSample, CoarseMaps, Bool[Tensor, "B"]]:
    """Loss of each pair, its gradient with respect to the maps, and whether the goal is reached."""
    maps = maps.detach().requires_grad_()
    mask = maps_to_mask(maps, goal.x.shape[-2:])
    logits = teacher(blend(goal.x, goal.partner, mask.to(goal.x))).float()
    divergence = F.kl_div(logits.log_softmax(dim=1), goal.target(logits.shape[1]), reduction="none")
    loss = divergence.sum(dim=1) + sparsity * (mask * (1 - mask)).mean(dim=(1, 2, 3))
    (gradient,) = torch.autograd.grad(loss.sum(), maps)
    return loss.detach(), gradient, goal.reached(logits.detach())


@dataclass(frozen=True, kw_only=True)
class SuperMix(Policy):
    """Masks found by gradient steps until a teacher recognises both images."""

    alpha: float = 3.0
    """lam ~ Beta(alpha, alpha), that is Dirichlet(alpha, alpha)."""
    per_sample: bool = True
    """Draw one lam per pair, as the original does, instead of one per batch."""
    grid: int = 8
    """Cells per side of the maps (the original: 8 on CIFAR, 16 on ImageNet)."""
    sigma: float = 1.0
    """Standard deviation of the blur in cells (the original: 1 on CIFAR, 2 on ImageNet)."""
    sparsity: float = 25.0
    """Weight of mean(mask (1 - mask)), which pushes masks to 0 and 1."""
    iterations: int = 50
    """Largest number of steps."""
    finished: float = 0.3
    """The batch stops when this share of its pairs is done (the original: .3); 1: all of them."""

    needs: ClassVar[tuple[str, ...]] = ("teacher",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, self, "mixup", "grid", "iterations")
        check_positive(self, "mixup", "sigma")
        check_not_negative(self, "mixup", "sparsity")
        check_positive_share(self, "mixup", "finished")

    @torch.no_grad()
    def find_maps(self, teacher: Teacher, goal: Goal) -> CoarseMaps:
        """Optimises the maps of every pair; pairs that are done are not shown to the teacher again."""
        maps = torch.zeros(len(goal.x), 2, self.grid, self.grid, device=goal.x.device)
        active = (goal.lam < 1).nonzero()[:, 0]
        enough = len(active) * (1 - self.finished)
        for step in range(self.iterations if len(active) else 0):  # not every teacher takes an empty batch
            loss, gradient, done = ask_teacher(teacher, goal.select(active), maps[active], self.sparsity)
            if step > 0:  # as in the original, every pair makes at least one step
                active, loss, gradient = active[~done], loss[~done], gradient[~done]
                if len(active) <= enough:
                    break
            maps[active] -= newton_step(loss, gradient, self.sigma)
        return maps

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One mask per pair; draws nothing."""
        teacher, images = hints.teacher, x.detach()
        assert teacher is not None  # declared in `needs`
        with torch.no_grad():
            classes = teacher(images).argmax(dim=1)
        lam = pairing.lam.to(images.device, torch.float32).expand(len(x))
        goal = Goal(images, images[pairing.index], classes, classes[pairing.index], lam)
        mask = maps_to_mask(self.find_maps(teacher, goal), x.shape[-2:])
        return torch.where(lam.view(-1, 1, 1, 1) == 1, 1.0, mask).to(x)
