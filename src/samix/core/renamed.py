"""Old names of settings: they keep working for one release, with a warning that tells the new name."""

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

Settings = TypeVar("Settings", bound=type)

OLD_NAMES = {
    "beta": "mask.beta",
    "beta_end": "mask.beta_end",
    "mask_margin": "mask.margin",
    "variance_weight": "mask.variance",
    "adjust": "adjusting.prob",
    "adjust_margin": "adjusting.margin",
    "lam_margin": "adjusting.lam_margin",
    "warmup": "adjusting.warmup",
    "momentum": "copy.momentum",
    "momentum_end": "copy.momentum_end",
    "momentum_hold": "copy.hold",
    "mixer_fraction": "speed.fraction",
    "mixer_probability": "speed.prob",
}
"""Settings of learned mixups as they were called before 0.2, understood for one release more."""
ADDED: dict[str, dict[str, Any]] = {
    "adjusting": {"rule": "scale", "temperature": 0.5},
    "mask": {"evidence": 0.0, "zoom": 2.0},
    "mixer": {"activation": "relu", "bias": True, "balanced": False, "limit": 4.0},
    "speed": {"online_maps": False},
}
"""Settings of learned mixups that came later, with what was done before."""
ADDED_TO_POLICIES: dict[str, dict[str, Any]] = {
    "cutmix": {"box": "paper", "minmax": None},
    "mixup+cutmix": {"box": "paper"},
    "samix-i": {"cross_view": False},
    "samix-c": {"cross_view": False, "auto_label": False},
    "inter-intra": {"policy": {"inter": "cutmix", "intra": "mixup"}},
}
"""The same of single mixups, by name."""
ADDED_TO_RECIPES: dict[str, dict[str, Any]] = {
    "data": {"test": "val", "test_zoom": None, "shrink": None}
    | {"test_size": None, "rand_augment": None, "jitter": 0.0, "erasing": 0.0, "repeats": 1},
    "encoder": {"layer": None, "weights": None, "frozen": 0, "freeze_norm": False},
    "objective": {"mix_until": 1.0, "decoupled": 0.0},
    "optimizer": {"head_lr": 1.0, "layer_decay": 1.0}
    | {"warmup_start": 0.0, "beta2": 0.999, "average": None, "decay_all": False},
    "terms": {"mixed_first": False},
    "machine": {"sync_norm": False},
}
"""The same of every recipe, by group."""
ADDED_FIELDS: dict[str, Any] = {"min_steps": 0}
"""The same of every recipe, outside of groups."""
ADDED_TO_PRETRAININGS: dict[str, Any] = {
    "crops": {"count": 0, "size": 96, "min_scale": 0.05, "max_scale": 0.14},
}
"""The same of recipes without labels, which have a method."""


def warn_of(old: str, new: str, *, depth: int) -> None:
    """Says that a setting has a new name, at the line that is `depth` calls away."""
    warnings.warn(f"{old} is now called {new}.", DeprecationWarning, stacklevel=depth + 1)


def accept_old_names(table: Mapping[str, str]) -> Callable[[Settings], Settings]:
    """Lets a dataclass of settings take old keywords: {'beta': 'mask.beta'} sets `beta` of its field
    `mask`."""

    def decorate(kind: Settings) -> Settings:
        initialise = kind.__init__  # type: ignore[misc]

        @functools.wraps(initialise)
        def take(self: Any, **given: Any) -> None:
            for old in [name for name in given if name in table]:
                group, _, name = table[old].partition(".")
                value = given.pop(old)
                warn_of(old, table[old], depth=2)
                given[group] = replace(given.get(group, default_of(kind, group)), **{name: value})
            initialise(self, **given)

        kind.__init__ = take  # type: ignore[misc]
        return kind

    return decorate


def default_of(kind: type, name: str) -> Any:
    """The value that a field has where nobody gives it one."""
    field = next(field for field in fields(kind) if field.name == name)
    return field.default_factory()  # type: ignore[misc,operator]


def read_old_name(settings: object, name: str, table: Mapping[str, str]) -> Any:
    """The value of a setting by its old name, for `__getattr__`."""
    if name not in table:
        raise AttributeError(f"{type(settings).__name__!r} has no setting {name!r}.")
    warn_of(name, table[name], depth=3)
    return attrgetter(table[name])(settings)


def rename(values: dict[str, Any], table: Mapping[str, str]) -> dict[str, Any]:
    """Settings as plain values with every old name replaced by its new place; the input stays as it is."""
    renamed = {name: value for name, value in values.items() if name not in table}
    for old in values.keys() & table.keys():
        group, _, name = table[old].partition(".")
        renamed[group] = {**renamed.get(group, {}), name: values[old]}
    return renamed
