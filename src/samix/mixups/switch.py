"""Several policies, of which one is drawn for each batch or pair; timm's and DeiT's Mixup+CutMix is one such.

The member is drawn first and then draws lam its own way, so that each keeps its alpha. `draw` returns a
`Choice`, a pairing that remembers its member. For a bare pairing (a sweep over given lam) the member is drawn
when the images are mixed, and takes the lam it is given.

Mixup+CutMix is checked against huggingface/pytorch-image-models: CutMix (alpha 1) with probability .5, else
mixup (alpha .8), with the label weight corrected to the box's true area. `per_sample` is timm's mode `elem`;
its mode `pair` is left out. Partners are those of the pairing; timm reverses the batch, which must be even.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from samix.core.pairing import Pairing, check_alpha, draw_derangement
from samix.core.shapes import Images, Index, Lam, Mask, RandomSource
from samix.mixups.base import Hints, Policy
from samix.mixups.cutmix import CutMix
from samix.mixups.mixup import MixUp

Member = Int[Tensor, "#B"]


class Choice(Pairing):
    """A pairing that remembers which member drew its lam."""

    member: Member | None = None
    """On the CPU; [1]: one member for the batch, or [B]: one per pair. None: yet to be drawn."""

    @classmethod
    def of(cls, lam: Lam, index: Index, member: Member) -> "Choice":
        """The pairing together with its members."""
        choice = cls(lam, index)
        choice.member = member
        return choice

    def _replace(self, **changes: Tensor) -> "Choice":
        """The choice with another lam or index and the same members."""
        changed = super()._replace(**changes)  # type: ignore[arg-type]
        changed.member = self.member
        return changed


@dataclass(frozen=True, kw_only=True)
class Switching(Policy):
    """Base of policies that let one of their members mix; a subclass says which and how often."""

    alpha: float = 1.0
    """Without effect: every member has its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha != 1:
            raise ValueError(f"mixup.alpha has no effect here, got {self.alpha}: set that of the members.")

    @property
    def members(self) -> tuple[Policy, ...]:
        """The policies to choose from."""
        raise TypeError(f"{type(self).__name__} must define members.")

    @property
    def odds(self) -> tuple[float, ...]:
        """The probability of each member."""
        raise TypeError(f"{type(self).__name__} must define odds.")

    def choose(self, count: int, generator: RandomSource) -> Member:
        """So many draws of a member's position."""
        return torch.multinomial(torch.tensor(self.odds), count, replacement=True, generator=generator)

    def chosen(self, pairing: Pairing, generator: RandomSource) -> Member:
        """The members that drew the pairing; new ones for a pairing that comes from elsewhere."""
        if isinstance(pairing, Choice) and pairing.member is not None:
            return pairing.member
        return self.choose(len(pairing.lam) if self.per_sample else 1, generator)

    def draw(
        self, batch: int, generator: RandomSource = None, device: torch.device | str | None = None
    ) -> Choice:
        """Draws a member, which then draws lam: one for the batch, or one for each pair."""
        member = self.choose(batch if self.per_sample else 1, generator)
        if self.per_sample:
            lams = [each.skip(each.draw_lam(batch, generator), generator) for each in self.members]
            lam = pick(lams, member)
        else:
            lam = self.members[int(member)].draw(batch, generator).lam
        lam, index = self.skip(lam, generator), draw_derangement(batch, generator)
        return Choice.of(lam.to(device), index.to(device), member)

    def decide(self, pairing: Pairing, generator: RandomSource) -> tuple[Policy, Pairing]:
        """The batch's member; this policy itself where each pair has its own."""
        member, bare = self.chosen(pairing, generator), Pairing(*pairing)
        if len(member) == 1:
            return self.members[int(member)], bare
        return self, Choice.of(*bare, member)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """Each pair's mask, from its own member."""
        member, bare = self.chosen(pairing, generator).expand(len(x)), Pairing(*pairing)
        drawn, position = member.unique(return_inverse=True)
        masks = [
            self.members[number].mask(x, bare, hints, generator).expand(len(x), -1, -1, -1)
            for number in drawn.tolist()
        ]
        return pick(masks, position)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """All that any member needs."""
        return needs_of(self.members)

    def needed(self, pairing: Pairing) -> tuple[str, ...]:
        """What the members that drew the pairing need."""
        if isinstance(pairing, Choice) and pairing.member is not None:
            return needs_of([self.members[number] for number in pairing.member.unique().tolist()])
        return self.needs


def needs_of(policies: Iterable[Policy]) -> tuple[str, ...]:
    """What any of the policies needs, each once."""
    return tuple(dict.fromkeys(name for policy in policies for name in policy.needs))


def pick(options: list[Tensor], member: Int[Tensor, "B"]) -> Tensor:
    """Row i of option member[i], for all i."""
    return torch.stack(options)[member, torch.arange(len(member))]


@dataclass(frozen=True, kw_only=True)
class Switch(Switching):
    """Any policies: `Switch(policies=(MixUp(alpha=0.8), TransMix()), probabilities=(0.5, 0.5))`."""

    policies: tuple[Policy, ...]
    """The policies to choose from. With per_sample they must be policies of masks alone."""
    probabilities: tuple[float, ...] = ()
    """How likely each policy is; they sum to 1. Empty: all alike."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.policies:
            raise ValueError("mixup.policies must name at least one policy.")
        if len(self.odds) != len(self.policies):
            raise ValueError(
                f"mixup.probabilities must have one value per policy ({len(self.policies)}), "
                f"got {len(self.probabilities)}."
            )
        if min(self.odds) < 0 or abs(sum(self.odds) - 1) > 1e-6:
            raise ValueError(
                f"mixup.probabilities must not be negative and must sum to 1, got {self.probabilities}."
            )
        for policy in self.policies:
            self.check(policy)

    def check(self, policy: Policy) -> None:
        """Refuses members that cannot be told apart by their masks."""
        kind = type(policy)
        if isinstance(policy, Switching):
            raise ValueError(
                f"mixup.policies must not hold another {kind.__name__}; list its members instead."
            )
        only_masks = kind.mix in (Policy.mix, CutMix.mix) and kind.mix_inside is Policy.mix_inside
        if self.per_sample and not only_masks:
            raise ValueError(
                f"{kind.__name__} does more than mask, so it cannot be chosen per pair. "
                "Choose per batch: per_sample=False, in samix.Mix mode='batch'."
            )

    @property
    def members(self) -> tuple[Policy, ...]:
        return self.policies

    @property
    def odds(self) -> tuple[float, ...]:
        return self.probabilities or (1 / len(self.policies),) * len(self.policies)

    @property
    def masks_pairs(self) -> bool:  # type: ignore[override]
        """Whether every member does."""
        return all(policy.masks_pairs for policy in self.policies)


@dataclass(frozen=True, kw_only=True)
class MixupCutMix(Switching):
    """Mixup or CutMix, as in the recipes of DeiT, Swin and RSB."""

    mixup_alpha: float = 0.8
    """lam ~ Beta(mixup_alpha, mixup_alpha) where mixup is drawn."""
    cutmix_alpha: float = 1.0
    """lam ~ Beta(cutmix_alpha, cutmix_alpha) where CutMix is drawn."""
    switch_prob: float = 0.5
    """Probability of CutMix."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mixup_alpha", "cutmix_alpha"):
            check_alpha(getattr(self, name), f"mixup.{name}")
        if not 0 <= self.switch_prob <= 1:
            raise ValueError(f"mixup.switch_prob must lie in [0, 1], got {self.switch_prob}.")

    @property
    def members(self) -> tuple[Policy, ...]:
        return MixUp(alpha=self.mixup_alpha), CutMix(alpha=self.cutmix_alpha)

    @property
    def odds(self) -> tuple[float, ...]:
        return 1 - self.switch_prob, self.switch_prob
