"""The contract of every mixup: `policy(x, pairing) -> Mixed`.

`lam` weighs the first image of a pair and `mask == 1` keeps it, everywhere; lam = 1 leaves it untouched.
Nothing here writes into its input. Only `draw` and a policy's own mask function touch the random generator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from samix._moved import find_moved
from samix.contract import Context, Model
from samix.core.checks import check_share
from samix.core.devices import send
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing, check_alpha, check_pairing, draw_derangement, draw_lam
from samix.core.shapes import AttentionMap, Images, Labels, Lam, Maps, Mask, RandomSource, Saliency


class Hints(NamedTuple):
    """What a policy may need beyond the images: it says so in `needs`, and the method supplies it."""

    pixels: Images | None = None
    """The images un-normalised, in [0, 1]."""
    saliency: Saliency | None = None
    """Gradient of the loss with respect to the images: root mean square over the channels."""
    attention: AttentionMap | None = None
    """Attention of the class token to the patches of each image, mean over heads; sums to 1. Without a class
    token the attention that each position receives."""
    maps: Maps | None = None
    """The last feature maps of a network that knows the images."""
    teacher: Callable[[Tensor], Tensor] | None = None
    """A frozen classifier: images -> logits, differentiable with respect to the images."""
    labels: Labels | None = None
    """Labels, or pseudo labels, of the images."""
    activation: AttentionMap | None = None
    """Class activation map of each image for its own label, on any scale."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Base of every hand-made policy; the dataclass is its own configuration."""

    alpha: float = 1.0
    """lam ~ Beta(alpha, alpha)."""
    prob: float = 1.0
    """Probability per batch of mixing at all (per pair where lam is drawn per pair)."""
    per_sample: bool = False
    """Draw one lam per pair instead of one per batch."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Fields of `Hints` that the policy requires."""
    masks_pairs: ClassVar[bool] = True
    """Whether a mixed image is two images of the batch under one mask."""
    mixes: ClassVar[bool] = True
    """Whether images are mixed at all."""
    learned: ClassVar[bool] = False
    """Whether a network learns the masks."""

    def __post_init__(self) -> None:
        check_alpha(self.alpha, "mixup.alpha")
        check_share(self, "mixup", "prob")

    def build(self, method: Model, context: Context) -> Model:
        """Wraps the method so that its images are mixed by this policy."""
        return context.mixing(method, self, stats=context.stats)

    @property
    def consistency(self) -> float:
        """Weight of the consistency loss between two mixed views of an image (AugMix); 0: none."""
        return 0.0

    @property
    def lam_weighs_labels(self) -> bool:
        """Whether the drawn lam could weigh labels in the place of what the mask shows."""
        return True

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """Draws `count` values of lam."""
        return draw_lam(count, self.alpha, generator)

    def draw(
        self, batch: int, generator: RandomSource = None, device: torch.device | str | None = None
    ) -> Pairing:
        """Draws a partner and lam for every image; lam = 1 means that the image is not mixed."""
        lam = self.draw_lam(batch if self.per_sample else 1, generator)
        index = draw_derangement(batch, generator)
        return Pairing(send(self.skip(lam, generator), device), send(index, device))

    def skip(self, lam: Lam, generator: RandomSource = None) -> Lam:
        """Replaces lam by 1 (no mixing) with probability 1 - prob."""
        if self.prob >= 1:
            return lam
        skipped = torch.rand(len(lam), generator=generator) >= self.prob
        return torch.where(skipped, torch.ones_like(lam), lam)

    def __call__(
        self, x: Images, pairing: Pairing, hints: Hints | None = None, generator: RandomSource = None
    ) -> Mixed:
        """Mixes each image with its partner."""
        check_pairing(pairing, len(x))
        policy, pairing = self.choose_policy(pairing, generator)
        return policy.mix(x, pairing, policy.check_hints(hints), generator)

    def run(
        self,
        network: nn.Module,
        x: Images,
        pairing: Pairing,
        hints: Hints | None = None,
        generator: RandomSource = None,
    ) -> tuple[Tensor, Mixed]:
        """Runs the network on the mixed batch; returns its outputs and the mixed batch."""
        check_pairing(pairing, len(x))
        policy, pairing = self.choose_policy(pairing, generator)
        return policy.mix_inside(network, x, pairing, policy.check_hints(hints), generator)

    def picture(
        self, x: Images, pairing: Pairing, hints: Hints | None = None, generator: RandomSource = None
    ) -> Mixed:
        """Mixes images for display; policies that mix inside a network mix the images instead."""
        check_pairing(pairing, len(x))
        policy, pairing = self.choose_policy(pairing, generator)
        return policy.mix_to_show(x, pairing, policy.check_hints(hints), generator)

    # A new policy overrides `mask`, or one of the methods below that use it.

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask, 1 where the first image is shown: one for the batch, or one per image."""
        raise TypeError(f"{type(self).__name__} must define mask(x, pairing, hints, generator).")

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Blends every pair by its mask; the label weight becomes the mean of the mask."""
        mask = self.mask(x, pairing, hints, generator)
        return Mixed(blend_pairs(x, pairing.index, mask), mask, Pairing(mean_of(mask), pairing.index))

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """Mixes and runs the network; overridden by policies that need the network while they mix."""
        mixed = self.mix(x, pairing, hints, generator)
        return network(mixed.x), mixed

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """Mixes images for display; overridden by policies that cannot mix images alone."""
        return self.mix(x, pairing, hints, generator)

    def choose_policy(self, pairing: Pairing, generator: RandomSource) -> tuple["Policy", Pairing]:
        """The policy that mixes this batch, and its pairing; a `Switch` returns one of its members."""
        return self, pairing

    def needed(self, pairing: Pairing) -> tuple[str, ...]:
        """The hints that this batch needs: fewer than `needs` if the pairing names one policy of several."""
        return self.needs

    def check_hints(self, hints: Hints | None) -> Hints:
        """Returns the hints; raises an error that names the first missing one."""
        hints = hints or Hints()
        for name in self.needs:
            if getattr(hints, name) is None:
                raise ValueError(
                    f"{type(self).__name__} needs {name}. Pass hints=Hints({name}=...), "
                    f"or let samix.Mix(..., model=model{', layer=...' if name == 'maps' else ''}) compute it."
                )
        return hints


def mean_of(mask: Mask) -> Lam:
    """The mean of each mask in float32: the label weight of the first image."""
    return mask.flatten(1).float().mean(dim=1)


def __getattr__(name: str) -> object:
    return find_moved("mixups.base", name)
