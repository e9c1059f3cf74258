"""The policy of a `Mix`, out of whatever names it: a word, a policy, several of them, shares."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from samix.core.words import suggest
from samix.learned import LEARNED
from samix.mix.settings import is_number
from samix.mixups import MIXUPS, CutMix, MixUp, Policy
from samix.mixups.switch import Switch, Switching

Policies: TypeAlias = str | Policy | Sequence[str | Policy] | Mapping[str, float]


def one_policy(given: Policies, alpha: float | None, *, per_sample: bool) -> Policy:
    """The policy, or one that switches between several, out of whatever the user gave."""
    if isinstance(given, Mapping):
        numbers = all(is_number(share) and share >= 0 for share in given.values())
        if not numbers or not 0 < sum(given.values()) < math.inf:
            raise ValueError(f"probabilities must be 0 or more and not all 0; got {dict(given)}.")
        shares = [(find_policy(name), float(share)) for name, share in given.items()]
    else:
        listed: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
        shares = [(find_policy(each), 1.0) for each in listed]
        if not shares:
            raise ValueError("name at least one policy.")
    changes = {} if alpha is None else {"alpha": alpha}
    # A policy that switches stands for its members, so that alpha reaches these.
    flat = [(member, share * odds) for each, share in shares for member, odds in members_of(each)]
    return switch([(replace(policy, **changes), share) for policy, share in flat], per_sample)  # type: ignore[arg-type]


def timm_policy(
    mixup_alpha: float, cutmix_alpha: float, cutmix_minmax: Sequence[float] | None, switch_prob: float
) -> Policy:
    """The policy that `timm.data.Mixup` is with these arguments: Mixup, CutMix, or a switch of both."""
    minmax = None if cutmix_minmax is None else (float(cutmix_minmax[0]), float(cutmix_minmax[1]))
    shares: list[tuple[Policy, float]] = []
    if mixup_alpha > 0:
        shares.append((MixUp(alpha=mixup_alpha), 1 - switch_prob))
    if cutmix_alpha > 0 or minmax is not None:
        alpha = cutmix_alpha if minmax is None else 1.0  # as in timm: unused, but a number
        shares.append((CutMix(alpha=alpha, minmax=minmax), switch_prob))
    if not shares:
        raise ValueError(
            "timm mixes by mixup_alpha > 0, cutmix_alpha > 0 or cutmix_minmax: give one of them."
        )
    return switch(shares, per_sample=False)


def switch(shares: Sequence[tuple[Policy, float]], per_sample: bool) -> Policy:
    """The one policy, or a switch of several with these shares."""
    if len(shares) == 1:
        return replace(shares[0][0], per_sample=per_sample)
    total = sum(share for _, share in shares)
    odds = tuple(share / total for _, share in shares)
    return Switch(policies=tuple(each for each, _ in shares), probabilities=odds, per_sample=per_sample)


def members_of(policy: Policy) -> list[tuple[Policy, float]]:
    """The policies behind a policy, with their probabilities."""
    if isinstance(policy, Switching):
        return list(zip(policy.members, policy.odds, strict=True))
    return [(policy, 1.0)]


def find_policy(policy: str | Policy) -> Policy:
    """A policy by its name in `MIXUPS`, with its own defaults."""
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise ValueError(f"a policy is a name or a samix.Policy; got {policy!r}.")
    if policy in LEARNED:
        settings = LEARNED[policy].__name__
        raise ValueError(
            f"{policy!r} learns its masks together with your network: use samix.SAMix.wrap(network, layer, "
            f"classes, samix.{settings}())."
        )
    if policy == "samix-p":
        raise ValueError("'samix-p' is a trained Mixer: Mix(samix.load_mixer('runs/...'), classes).")
    if policy not in MIXUPS:
        trained = "A trained Mixer: Mix(samix.load_mixer(NAME), classes)."
        raise ValueError(f"unknown mixup {suggest(policy, MIXUPS)} {trained}")
    return MIXUPS[policy]()
