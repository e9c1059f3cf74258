"""The contract of every mixup: `policy(x, pairing) -> Mixed`.

`lam` weighs the first image of a pair and `mask == 1` keeps it, everywhere; lam = 1 leaves it untouched.
Nothing here writes into its input. Only `draw` and a policy's own mask function touch the random generator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from samix.contract import Context, Model
from samix.core.checks import check_share
from samix.core.mixed import Mixed, blend_pairs
from samix.core.pairing import Pairing, check_alpha, check_pairing, draw_derangement, draw_lam
from samix.core.shapes import AttentionMap, Images, Labels, Lam, Maps, Mask, RandomSource, Saliency


class Hints(NamedTuple):
    """What a policy may need beyond the images. It declares it in `needs`; the method supplies it."""

    pixels: Images | None = None
    """The images un-normalised, in [0, 1]."""
    saliency: Saliency | None = None
    """Root mean square over the channels of the loss's gradient with respect to the images."""
    attention: AttentionMap | None = None
    """Attention of the class token to the patches of the images, mean over heads; sums to 1."""
    maps: Maps | None = None
    """The last feature maps of a network that knows the images."""
    teacher: Callable[[Tensor], Tensor] | None = None
    """A frozen classifier: images -> logits, differentiable with respect to the images."""
    labels: Labels | None = None
    """Labels, or pseudo labels, of the images."""


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
    """Fields of `Hints` that the policy cannot do without."""
    masks_pairs: ClassVar[bool] = True
    """Whether a mixed image is two images of the batch under one mask."""
    mixes: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha, "mixup.alpha")
        check_share(self, "mixup", "prob")

    def build(self, method: Model, context: Context) -> Model:
        """The method with its images mixed by this policy."""
        return context.mixing(method, self, stats=context.stats)

    @property
    def consistency(self) -> float:
        """Weight of the agreement between predictions on two draws of the policy (AugMix); 0: labels
        alone."""
        return 0.0

    def draw_lam(self, count: int, generator: RandomSource = None) -> Lam:
        """Draws `count` values of lam."""
        return draw_lam(count, self.alpha, generator)

    def draw(
        self, batch: int, generator: RandomSource = None, device: torch.device | str | None = None
    ) -> Pairing:
        """Draws who is mixed with whom and how much; a pair that stays as it is gets lam = 1."""
        lam = self.draw_lam(batch if self.per_sample else 1, generator)
        index = draw_derangement(batch, generator)
        return Pairing(self.skip(lam, generator).to(device), index.to(device))

    def skip(self, lam: Lam, generator: RandomSource = None) -> Lam:
        """lam, or 1 with probability 1 - prob."""
        if self.prob >= 1:
            return lam
        kept = torch.rand(len(lam), generator=generator) >= self.prob
        return torch.where(kept, torch.ones_like(lam), lam)

    def __call__(
        self, x: Images, pairing: Pairing, hints: Hints | None = None, generator: RandomSource = None
    ) -> Mixed:
        """Mixes each image with its partner."""
        check_pairing(pairing, len(x))
        policy, pairing = self.decide(pairing, generator)
        return policy.mix(x, pairing, policy.checked(hints), generator)

    def run(
        self,
        network: nn.Module,
        x: Images,
        pairing: Pairing,
        hints: Hints | None = None,
        generator: RandomSource = None,
    ) -> tuple[Tensor, Mixed]:
        """The network's outputs on the mixed batch, and the batch."""
        check_pairing(pairing, len(x))
        policy, pairing = self.decide(pairing, generator)
        return policy.mix_inside(network, x, pairing, policy.checked(hints), generator)

    def picture(
        self, x: Images, pairing: Pairing, hints: Hints | None = None, generator: RandomSource = None
    ) -> Mixed:
        """What the policy does, to look at; policies that mix inside a network mix the images instead."""
        check_pairing(pairing, len(x))
        policy, pairing = self.decide(pairing, generator)
        return policy.mix_to_show(x, pairing, policy.checked(hints), generator)

    # What a policy of one's own defines: a mask, or one of the steps behind it.

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """Where the first image shows: one mask for the batch, or one per image."""
        raise TypeError(f"{type(self).__name__} must define mask(x, pairing, hints, generator).")

    def mix(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """The pairs under the mask; the label weight becomes the mask's true mean."""
        mask = self.mask(x, pairing, hints, generator)
        return Mixed(blend_pairs(x, pairing.index, mask), mask, Pairing(mean_of(mask), pairing.index))

    def mix_inside(
        self, network: nn.Module, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource
    ) -> tuple[Tensor, Mixed]:
        """For policies that mix hidden layers, or weigh labels by what the network attends to."""
        mixed = self.mix(x, pairing, hints, generator)
        return network(mixed.x), mixed

    def mix_to_show(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mixed:
        """For policies that cannot mix images alone."""
        return self.mix(x, pairing, hints, generator)

    def decide(self, pairing: Pairing, generator: RandomSource) -> tuple["Policy", Pairing]:
        """The policy that mixes this batch: itself, unless it chooses among others."""
        return self, pairing

    def needed(self, pairing: Pairing) -> tuple[str, ...]:
        """What this batch needs; less than `needs` where a pairing names one policy of several."""
        return self.needs

    def checked(self, hints: Hints | None) -> Hints:
        """The hints, or an error that names what is missing."""
        hints = hints or Hints()
        for name in self.needs:
            if getattr(hints, name) is None:
                raise ValueError(
                    f"{type(self).__name__} needs {name}. Pass hints=Hints({name}=...), "
                    f"or let samix.Mix(..., model=model{', layer=...' if name == 'maps' else ''}) compute it."
                )
        return hints


def mean_of(mask: Mask) -> Lam:
    """The mean of each mask in float32: the label weight that its first image deserves."""
    return mask.flatten(1).float().mean(dim=1)
