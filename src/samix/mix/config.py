"""A `Mix` as plain values that YAML can hold, and back; what it prints as.

Networks and generators are no plain values: they are given anew, `Mix.from_config(config, model=model)`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from samix.core.words import suggest
from samix.mix.policies import members_of, switch
from samix.mixups import MIXUPS, Policy
from samix.mixups.switch import Switching

if TYPE_CHECKING:
    from samix.mix.dropin import Mix

DEFAULTS: dict[str, Any] = {
    "classes": None,
    "prob": 1.0,
    "mode": "batch",
    "correct_lam": True,
    "smoothing": 0.0,
    "off_epoch": None,
    "mean": None,
    "std": None,
    "keys": None,
    "per_frame": False,
}
"""Settings that are plain values, in the order in which they are written; defaults are left out."""
NAMES = {kind: name for name, kind in MIXUPS.items()}


def to_config(mix: "Mix") -> dict[str, Any]:
    """The policy and every setting that is not its default, as plain values."""
    return {"policy": policy_config(mix.policy)} | changed_settings(mix)


def changed_settings(mix: "Mix") -> dict[str, Any]:
    """Every plain setting that is not its default."""
    stats = mix.supplier.stats
    normalised = {} if stats is None else stats._asdict()
    found = {name: getattr(mix, name, normalised.get(name)) for name in DEFAULTS}
    return {name: plain(value) for name, value in found.items() if value != DEFAULTS[name]}


def plain(value: Any) -> Any:
    """Tuples as lists, which YAML has; mappings and lists by their parts."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, tuple | list) else value


def policy_config(policy: Policy) -> str | dict[str, Any] | list[dict[str, Any]]:
    """A policy's name, its name with settings, or several of these with their shares."""
    members = members_of(policy)
    if len(members) == 1:
        settings = settings_of(policy)
        return {"name": name_of(policy)} | settings if settings else name_of(policy)
    return [{"name": name_of(each), "share": share} | settings_of(each) for each, share in members]


def name_of(policy: Policy) -> str:
    """The policy's name in `MIXUPS`."""
    if type(policy) not in NAMES:
        raise ValueError(
            f"{type(policy).__name__} has no name in samix.MIXUPS, so no configuration can hold it."
        )
    return NAMES[type(policy)]


def settings_of(policy: Policy) -> dict[str, Any]:
    """The settings of a policy that are not defaults, without per_sample, which the mode decides."""
    found = {}
    for field in fields(policy):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        value = getattr(policy, field.name)
        if field.repr and field.name != "per_sample" and value != default:
            found[field.name] = plain(value)
    return found


def read_policy(config: Any) -> tuple[Policy, float]:
    """The policy that `policy_config` wrote, and its share."""
    if isinstance(config, list | tuple):
        return switch([read_policy(each) for each in config], per_sample=False), 1.0
    values = {"name": config} if isinstance(config, str) else dict(config)
    name, share = values.pop("name", None), values.pop("share", 1.0)
    if name not in MIXUPS:
        raise ValueError(f"unknown mixup {suggest(str(name), MIXUPS)}")
    known = [field.name for field in fields(MIXUPS[name])]
    for key in values:
        if key not in known:
            raise ValueError(f"{name} has no setting {suggest(key, known)}")
    settings: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    return MIXUPS[name](**settings), float(share)


def read_config(source: Mapping[str, Any] | str | PathLike[str]) -> dict[str, Any]:
    """The arguments of a `Mix`, from plain values or from a YAML file (safely loaded)."""
    values = (
        source if isinstance(source, Mapping) else yaml.safe_load(Path(source).read_text(encoding="utf-8"))
    )
    if not isinstance(values, Mapping) or "policy" not in values:
        raise ValueError(f"the configuration of a Mix names at least its policy; got {values!r}.")
    unknown = [str(name) for name in values if name != "policy" and name not in DEFAULTS]
    if unknown:
        raise ValueError(f"the configuration of a Mix has no {suggest(unknown[0], ['policy', *DEFAULTS])}")
    return dict(values) | {"policy": read_policy(values["policy"])[0]}


def describe(mix: "Mix") -> str:
    """Mix(CutMix(alpha=0.2), classes=100): the policy and what is not a default."""
    policy = describe_policy(mix.policy)
    if isinstance(mix.policy, Switching):
        shown = [f"{share:.3g} * {describe_policy(each)}" for each, share in members_of(mix.policy)]
        policy = f"[{', '.join(shown)}]"
    return f"Mix({', '.join([policy, *as_arguments(changed_settings(mix))])})"


def describe_policy(policy: Policy) -> str:
    """CutMix(alpha=0.2): a policy with what is not a default."""
    return f"{type(policy).__name__}({', '.join(as_arguments(settings_of(policy)))})"


def as_arguments(settings: Mapping[str, Any]) -> list[str]:
    """alpha=0.2, ..."""
    return [f"{name}={value!r}" for name, value in settings.items()]
