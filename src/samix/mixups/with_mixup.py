"""TransMix and TokenMix as they are trained: one batch in two is mixed by Mixup instead.

A recipe's settings name these by one word each; elsewhere the same is
`Switch(policies=(MixUp(alpha=0.8), TransMix()))`.
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
class OrMixup(Switching):
    """Mixup or another policy, drawn per batch."""

    mixup_alpha: float = 0.8
    """lam ~ Beta(mixup_alpha, mixup_alpha) if Mixup is drawn."""
    switch_prob: float = 0.5
    """Probability of the other policy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.mixup_alpha, "mixup.mixup_alpha")
        check_share(self, "mixup", "switch_prob")
        rule = "must be false: one of the two does more than mask, so they cannot be chosen per pair"
        check_fields(self, "mixup", ["per_sample"], lambda value: not value, rule)

    @property
    def other(self) -> Policy:
        """The policy that Mixup takes turns with."""
        raise TypeError(f"{type(self).__name__} must define other.")

    @cached_property
    def members(self) -> tuple[Policy, ...]:  # type: ignore[override]
        return MixUp(alpha=self.mixup_alpha), self.other

    @property
    def odds(self) -> tuple[float, ...]:
        return 1 - self.switch_prob, self.switch_prob


@dataclass(frozen=True, kw_only=True)
class MixupTransMix(OrMixup):
    """Mixup or TransMix."""

    transmix_alpha: float = 1.0
    """lam ~ Beta(transmix_alpha, transmix_alpha) if TransMix is drawn."""
    area_weight: float = 0.5
    """How much the area of TransMix's box counts for the label; the rest is attention."""

    @property
    def other(self) -> Policy:
        return TransMix(alpha=self.transmix_alpha, area_weight=self.area_weight)


@dataclass(frozen=True, kw_only=True)
class MixupTokenMix(OrMixup):
    """Mixup or TokenMix."""

    keep: float = 0.5
    """TokenMix's constant lam."""
    normalized: bool = True
    """Divide TokenMix's label weights by their sum; False (the original) goes with objective.binary."""

    @property
    def other(self) -> Policy:
        return TokenMix(keep=self.keep, normalized=self.normalized)
