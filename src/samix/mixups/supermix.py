"""SuperMix (arXiv 2003.05034): masks that make a teacher see both images of a pair, in given proportions.

A frozen teacher T names a class for each image; q = lam onehot(c_i) + (1 - lam) onehot(c_j) is what it should
say about the mixture. The variables are two coarse maps per pair, 0 at the start (an equal blend):

    mask = sigma(up map_i) / (sigma(up map_i) + sigma(up map_j)),  x_mix = mask x_i + (1 - mask) x_j
    L = KL(q || T(x_mix)) + sparsity mean(mask (1 - mask))
    maps <- maps - clamp(L / <g, g'>, 1e-4, 2000) g',  g = dL/d maps, g' = g blurred by a Gaussian

A pair is done, and frozen, as soon as the two classes that T finds most probable are c_i and c_j.

Differs from the original (github.com/alldbi/SuperMix), which writes finished mixtures to disk, labels them by
T's strongest class and throws the rest away. Here a batch is mixed while it is trained on, so every pair
needs an image and a label: the label weight is mean(mask), finished or not, which is what the image shows.
The target lam would be wrong for pairs that are not done, and for most others too: a pair stops at the first
step at which T ranks both classes on top, in whatever proportion.
A pair of one class is done when T's strongest class is that class; in the original it practically never is.
The look that tells whether a pair is done also gives the next gradient: one pass per step instead of two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from samix.core.mixed import blend
from samix.core.pairing import Pairing
from samix.core.shapes import Images, Index, Labels, Logits, Mask, PerSample, RandomSource, Size
from samix.mixups.base import Hints, Policy

Teacher = Callable[[Tensor], Tensor]
CoarseMaps = Float[Tensor, "B 2 w w"]


class Goal(NamedTuple):
    """Pairs of images, and what the teacher should say about their mixtures."""

    x: Images
    partner: Images
    own: Labels
    other: Labels
    lam: PerSample

    def at(self, pairs: Index) -> "Goal":
        """Only these pairs."""
        return Goal(*(value[pairs] for value in self))

    def target(self, classes: int) -> Float[Tensor, "B K"]:
        """q = lam onehot(c_i) + (1 - lam) onehot(c_j)."""
        own, other = F.one_hot(self.own, classes), F.one_hot(self.other, classes)
        return self.lam[:, None] * own + (1 - self.lam[:, None]) * other

    def reached(self, logits: Logits) -> Bool[Tensor, "B"]:
        """Whether the most probable classes are those of the pair, in any order."""
        first, second = logits.topk(2, dim=1).indices.unbind(dim=1)
        straight = (first == self.own) & (second == self.other)
        crossed = (first == self.other) & (second == self.own)
        return straight | crossed | ((first == self.own) & (self.own == self.other))


def mask_of(maps: CoarseMaps, size: Size) -> Mask:
    """sigma(map_i) / (sigma(map_i) + sigma(map_j)) of the bilinearly upsampled maps."""
    shown = F.logsigmoid(F.interpolate(maps, size=size, mode="bilinear", align_corners=False))
    return (shown[:, :1] - shown[:, 1:]).sigmoid()  # the same quotient, without 0 / 0 for low maps


def blur(maps: CoarseMaps, sigma: float) -> CoarseMaps:
    """Gaussian of `sigma` cells and about 5 sigma taps, zeros outside.

    The number of taps is made odd: an even kernel would shift the maps by half a cell.
    """
    half = int(5 * sigma) // 2
    taps = torch.exp(-(torch.arange(-half, half + 1).to(maps) ** 2) / (2 * sigma**2))
    taps = taps / taps.sum()
    with torch.autocast(maps.device.type, enabled=False):  # small gradients would vanish in half precision
        planes = F.conv2d(maps.flatten(0, 1)[:, None], (taps[:, None] * taps)[None, None], padding=half)
    return planes.view_as(maps)


def newton_step(loss: PerSample, gradient: CoarseMaps, sigma: float) -> CoarseMaps:
    """clamp(L / <g, g'>, 1e-4, 2000) g': what to subtract from the maps."""
    blurred = blur(gradient, sigma)
    slope = (gradient * blurred).sum(dim=(1, 2, 3))
    length = torch.where(slope > 0, loss / slope, 0.0).clamp(1e-4, 2000)
    return length.view(-1, 1, 1, 1) * blurred


@torch.enable_grad()
def supervise(
    teacher: Teacher, goal: Goal, maps: CoarseMaps, sparsity: float
) -> tuple[PerSample, CoarseMaps, Bool[Tensor, "B"]]:
    """The loss of each pair, its gradient with respect to the maps, and whether the goal is reached."""
    maps = maps.detach().requires_grad_()
    mask = mask_of(maps, (goal.x.shape[2], goal.x.shape[3]))
    logits = teacher(blend(goal.x, goal.partner, mask.to(goal.x))).float()
    divergence = F.kl_div(logits.log_softmax(dim=1), goal.target(logits.shape[1]), reduction="none").sum(
        dim=1
    )
    loss = divergence + sparsity * (mask * (1 - mask)).mean(dim=(1, 2, 3))
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
    """Steps at most."""
    finished: float = 0.3
    """The batch stops when this part of it is done (the original: .3); 1 waits for every pair."""

    needs: ClassVar[tuple[str, ...]] = ("teacher",)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("grid", "iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"mixup.{name} must be at least 1, got {getattr(self, name)}.")
        if self.sigma <= 0:
            raise ValueError(f"mixup.sigma must be positive, got {self.sigma}.")
        if self.sparsity < 0:
            raise ValueError(f"mixup.sparsity must not be negative, got {self.sparsity}.")
        if not 0 < self.finished <= 1:
            raise ValueError(f"mixup.finished must lie in (0, 1], got {self.finished}.")

    @torch.no_grad()
    def maps(self, teacher: Teacher, goal: Goal) -> CoarseMaps:
        """The maps of every pair; what is done no longer costs a pass through the teacher."""
        maps = torch.zeros(len(goal.x), 2, self.grid, self.grid, device=goal.x.device)
        active = (goal.lam < 1).nonzero()[:, 0]
        enough = len(active) * (1 - self.finished)
        for step in range(self.iterations if len(active) else 0):  # not every teacher takes an empty batch
            loss, gradient, done = supervise(teacher, goal.at(active), maps[active], self.sparsity)
            if step > 0:  # even a pair that starts at the goal makes one step, as in the original
                active, loss, gradient = active[~done], loss[~done], gradient[~done]
                if len(active) <= enough:
                    break
            maps[active] -= newton_step(loss, gradient, self.sigma)
        return maps

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """One mask per pair; the generator is not used."""
        teacher, images = hints.teacher, x.detach()
        assert teacher is not None  # checked
        with torch.no_grad():
            classes = teacher(images).argmax(dim=1)
        lam = pairing.lam.to(images.device, torch.float32).expand(len(x))
        goal = Goal(images, images[pairing.index], classes, classes[pairing.index], lam)
        mask = mask_of(self.maps(teacher, goal), (x.shape[2], x.shape[3]))
        return torch.where(lam.view(-1, 1, 1, 1) == 1, 1.0, mask).to(x)
