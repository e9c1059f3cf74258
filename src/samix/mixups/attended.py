"""Mixup or TransMix, Mixup or TokenMix: one of the two per batch, as both papers train their transformers.

Beckschen/TransMix and Sense-X/TokenMix draw Mixup (alpha .8) with probability 1/2 and else their own policy.
These are switches with a name, so that a recipe can hold them; any other is a `Switch`.
"""

from dataclasses import dataclass
from functools import cached_property

from samix.core.checks import check_fields, check_share
from samix.core.pairing import check_alpha
from samix.mixups.base import Policy
from samix.mixups.mixup import MixUp
from samix.mixups.switch import Switching
from samix.mixups.tokenmix import TokenMix
from samix.mixups.transmix import TransMix


@dataclass(frozen=True, kw_only=True)
class MixupOr(Switching):
    """Base: Mixup, or the policy that a subclass names in `other`."""

    mixup_alpha: float = 0.8
    """lam ~ Beta(mixup_alpha, mixup_alpha) if Mixup is drawn."""
    switch_prob: float = 0.5
    """Probability of the other policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.mixup_alpha, "mixup.mixup_alpha")
        check_share(self, "mixup", "switch_prob")
        rule = "must stay false, because labels are weighed by attention for the whole batch"
        check_fields(self, "mixup", ["per_sample"], lambda value: not value, rule)

    @cached_property
    def members(self) -> tuple[Policy, ...]:  # type: ignore[override]
        return MixUp(alpha=self.mixup_alpha), self.other()

    @property
    def odds(self) -> tuple[float, ...]:
        return 1 - self.switch_prob, self.switch_prob

    def other(self) -> Policy:
        """The policy beside Mixup."""
        raise TypeError(f"{type(self).__name__} must define other().")


@dataclass(frozen=True, kw_only=True)
class MixupTransMix(MixupOr):
    """Mixup or TransMix."""

    transmix_alpha: float = 1.0
    """lam ~ Beta(transmix_alpha, transmix_alpha) if TransMix is drawn."""
    area_weight: float = 0.5
    """How much the area of TransMix's box counts for the label; the rest is attention."""

    def other(self) -> Policy:
        return TransMix(alpha=self.transmix_alpha, area_weight=self.area_weight)


@dataclass(frozen=True, kw_only=True)
class MixupTokenMix(MixupOr):
    """Mixup or TokenMix."""

    keep: float = 0.5
    """The share of tokens that TokenMix leaves to the first image, before the partner's extra tokens."""
    normalized: bool = True
    """Divide the label weights of TokenMix by their sum."""

    def other(self) -> Policy:
        return TokenMix(keep=self.keep, normalized=self.normalized)
