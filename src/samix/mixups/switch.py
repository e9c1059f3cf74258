"""Several policies (members), one of which is drawn for each batch or pair; for example Mixup+CutMix of timm.

The member is drawn first and then draws lam in its own way, so each member keeps its alpha. `draw` returns a
`Choice`, a pairing that remembers its member. For a plain `Pairing` (for example in a sweep over lam) the
member is drawn when the images are mixed, and uses the given lam.

Mixup+CutMix is checked against huggingface/pytorch-image-models: CutMix (alpha 1) with probability .5, else
mixup (alpha .8). `per_sample` is timm's mode `elem`; its mode `pair` is in `samix.Mix`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from samix.core.checks import check_fields, check_share, check_words
from samix.core.devices import at_hand, send
from samix.core.pairing import Pairing, check_alpha, draw_derangement
from samix.core.shapes import Images, Index, Lam, Mask, RandomSource
from samix.mixups.base import Hints, Policy
from samix.mixups.cutmix import BoxName, CutMix
from samix.mixups.mixup import MixUp

Member = Int[Tensor, "#B"]


class Choice(Pairing):
    """A pairing that remembers which member drew its lam."""

    member: Member | None = None
    """Positions of the members, on the CPU: [1] for the batch or [B] per pair. None: not drawn yet."""

    @classmethod
    def of(cls, lam: Lam, index: Index, member: Member) -> "Choice":
        """A choice of these members."""
        choice = cls(lam, index)
        choice.member = member
        return choice

    def _replace(self, **changes: Tensor) -> "Choice":
        """The choice with a new lam or index and the same members."""
        changed = super()._replace(**changes)  # type: ignore[arg-type]
        changed.member = self.member
        return changed


@dataclass(frozen=True, kw_only=True)
class Switching(Policy):
    """Base of policies that draw one of their members; a subclass defines `members` and `odds`."""

    alpha: float = 1.0
    """Not used: every member has its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "must stay 1 (set alpha of the members instead)"
        check_fields(self, "mixup", ["alpha"], lambda value: value == 1, rule)

    @property
    def members(self) -> tuple[Policy, ...]:
        """The policies to choose from."""
        raise TypeError(f"{type(self).__name__} must define members.")

    @property
    def odds(self) -> tuple[float, ...]:
        """The probability of each member."""
        raise TypeError(f"{type(self).__name__} must define odds.")

    def choose(self, count: int, generator: RandomSource) -> Member:
        """Draws the positions of `count` members."""
        odds = torch.tensor(self.odds)
        if count > 1:
            return torch.multinomial(odds, count, replacement=True, generator=generator)
        # One draw as torch.multinomial makes it, without its checks: the earliest of exponential waits.
        return (odds / torch.empty_like(odds).exponential_(generator=generator)).argmax(0, keepdim=True)

    def members_of(self, pairing: Pairing, generator: RandomSource) -> Member:
        """Positions of the members that drew the pairing; newly drawn for a plain `Pairing`."""
        if isinstance(pairing, Choice) and pairing.member is not None:
            return pairing.member
        return self.choose(len(pairing.lam) if self.per_sample else 1, generator)

    def draw(
        self, batch: int, generator: RandomSource = None, device: torch.device | str | None = None
    ) -> Choice:
        """Draws a member, which then draws lam: one for the batch, or one for each pair."""
        member = self.choose(batch if self.per_sample else 1, generator)
        if self.per_sample or not at_hand(member):
            lams = [each.skip(each.draw_lam(len(member), generator), generator) for each in self.members]
            lam = pick_rows(lams, member)
        else:
            drawn = self.members[int(member)]
            lam = drawn.draw_lam(batch if drawn.per_sample else 1, generator)
            torch.randperm(batch, generator=generator)  # unused, so that a seed draws what it always drew
            lam = drawn.skip(lam, generator)
        lam, index = self.skip(lam, generator), draw_derangement(batch, generator)
        return Choice.of(send(lam, device), send(index, device), member)

    def choose_policy(self, pairing: Pairing, generator: RandomSource) -> tuple[Policy, Pairing]:
        """The member that mixes the batch; this policy itself if every pair has its own member.

        While torch.compile traces, nobody knows the member: all of them make their masks.
        """
        member, plain = self.members_of(pairing, generator), Pairing(*pairing)
        if len(member) == 1 and at_hand(member):
            return self.members[int(member)], plain
        return self, Choice.of(*plain, member)

    def mask(self, x: Images, pairing: Pairing, hints: Hints, generator: RandomSource) -> Mask:
        """The mask of each pair, made by its own member."""
        member, plain = self.members_of(pairing, generator), Pairing(*pairing)
        numbers, position = drawn_members(member, len(self.members))
        count = max(len(member), len(plain.lam))
        masks = [
            self.members[number].mask(x, plain, hints, generator).expand(count, -1, -1, -1)
            for number in numbers
        ]
        return pick_rows(masks, position.expand(count))

    @property
    def lam_weighs_labels(self) -> bool:
        """If it does for every member."""
        return all(member.lam_weighs_labels for member in self.members)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The hints that any member needs."""
        return needs_of(self.members)

    def needed(self, pairing: Pairing) -> tuple[str, ...]:
        """The hints that the members which drew the pairing need."""
        needs = self.needs
        if needs and isinstance(pairing, Choice) and pairing.member is not None:
            numbers, _ = drawn_members(pairing.member, len(self.members))
            return needs_of([self.members[number] for number in numbers])
        return needs


def drawn_members(member: Member, count: int) -> tuple[Sequence[int], Member]:
    """Which of `count` members were drawn, and positions among these; all of them where nobody may look."""
    if not at_hand(member):
        return range(count), member
    drawn, position = member.unique(return_inverse=True)
    return drawn.tolist(), position


def needs_of(policies: Iterable[Policy]) -> tuple[str, ...]:
    """The hints that any of the policies needs, without repetition."""
    return tuple(dict.fromkeys(name for policy in policies for name in policy.needs))


def pick_rows(options: list[Tensor], member: Int[Tensor, "B"]) -> Tensor:
    """Row i comes from row i of options[member[i]]."""
    stacked = torch.stack(options)
    rows = torch.arange(len(member), device=stacked.device)
    return stacked[send(member, stacked.device), rows]


@dataclass(frozen=True, kw_only=True)
class Switch(Switching):
    """Any policies: `Switch(policies=(MixUp(alpha=0.8), TransMix()), probabilities=(0.5, 0.5))`."""

    policies: tuple[Policy, ...]
    """The policies to choose from. With per_sample, only policies that define nothing but a mask."""
    probabilities: tuple[float, ...] = ()
    """The probability of each policy; they sum to 1. Empty: all equally likely."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, "mixup", ["policies"], bool, "must name at least one policy")
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
            self.check_member(policy)

    def check_member(self, policy: Policy) -> None:
        """Refuses another switch, and with per_sample policies that do more than mask."""
        kind = type(policy)
        if isinstance(policy, Switching):
            raise ValueError(
                f"mixup.policies must not hold another {kind.__name__}; list its members instead."
            )
        only_masks = kind.mix in (Policy.mix, MixUp.mix, CutMix.mix) and kind.mix_inside is Policy.mix_inside
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
        """Whether every member mixes two images under one mask."""
        return all(policy.masks_pairs for policy in self.policies)


@dataclass(frozen=True, kw_only=True)
class MixupCutMix(Switching):
    """Mixup or CutMix, as in the recipes of DeiT, Swin and RSB."""

    mixup_alpha: float = 0.8
    """lam ~ Beta(mixup_alpha, mixup_alpha) if mixup is drawn."""
    cutmix_alpha: float = 1.0
    """lam ~ Beta(cutmix_alpha, cutmix_alpha) if CutMix is drawn."""
    switch_prob: float = 0.5
    """Probability of CutMix."""
    box: BoxName = "whole"
    """The box of CutMix: odd sides stay whole (as in timm), or lose a pixel (the "paper"'s code)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mixup_alpha", "cutmix_alpha"):
            check_alpha(getattr(self, name), f"mixup.{name}")
        check_share(self, "mixup", "switch_prob")
        check_words(self, "mixup")

    @cached_property  # each batch asks several times, and settings are checked anew whenever they are built
    def members(self) -> tuple[Policy, ...]:  # type: ignore[override]
        return MixUp(alpha=self.mixup_alpha), CutMix(alpha=self.cutmix_alpha, box=self.box)

    @property
    def odds(self) -> tuple[float, ...]:
        return 1 - self.switch_prob, self.switch_prob
