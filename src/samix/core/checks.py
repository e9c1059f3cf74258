"""Checks of settings: each says which field, what it got and what is allowed.

A check takes the settings, the group that the command line knows them by, and names of their fields. Null
passes: where a field may be null, its type says so. Comparisons are written so that NaN fails them.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from samix.core.words import suggest


def check_fields(
    settings: Any, group: str, names: Iterable[str], holds: Callable[[Any], bool], rule: str
) -> None:
    """Refuses fields whose value is not null and for which the rule does not hold."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and not passes(holds, value):
            raise ValueError(f"{dotted(group, name)} {rule}, got {value!r}.")


def passes(holds: Callable[[Any], bool], value: object) -> bool:
    """Whether the rule holds for the value; of a value that it cannot be asked for, it does not."""
    try:
        return bool(holds(value))
    except (TypeError, ValueError, IndexError):
        return False


def check_kind(settings: Any, group: str, **kinds: type) -> None:
    """Refuses fields that are no settings of their kind, `mask=MaskLoss`."""
    for name, kind in kinds.items():
        value = getattr(settings, name)
        if not isinstance(value, kind):
            raise ValueError(f"{dotted(group, name)} must be a {kind.__name__}(...), got {value!r}.")


def dotted(group: str, name: str) -> str:
    """The field as the command line writes it: 'mixup.alpha', or 'epochs' without a group."""
    return f"{group}.{name}" if group else name


def check_share(settings: Any, group: str, *names: str) -> None:
    """Refuses what does not lie in [0, 1]."""
    check_fields(settings, group, names, lambda value: 0 <= value <= 1, "must lie in [0, 1]")


def check_positive_share(settings: Any, group: str, *names: str) -> None:
    """Refuses what does not lie in (0, 1]."""
    check_fields(settings, group, names, lambda value: 0 < value <= 1, "must lie in (0, 1]")


def check_below_one(settings: Any, group: str, *names: str) -> None:
    """Refuses what does not lie in [0, 1)."""
    check_fields(settings, group, names, lambda value: 0 <= value < 1, "must lie in [0, 1)")


def check_positive(settings: Any, group: str, *names: str) -> None:
    """Refuses what is not above 0."""
    check_fields(settings, group, names, lambda value: 0 < value < math.inf, "must be positive")


def check_not_negative(settings: Any, group: str, *names: str) -> None:
    """Refuses what is below 0."""
    check_fields(settings, group, names, lambda value: 0 <= value < math.inf, "must not be negative")


def check_at_least(least: int, settings: Any, group: str, *names: str) -> None:
    """Refuses what is below `least`."""
    check_fields(settings, group, names, lambda value: value >= least, f"must be at least {least}")


def check_at_most(most: int, settings: Any, group: str, *names: str) -> None:
    """Refuses what is above `most`."""
    check_fields(settings, group, names, lambda value: value <= most, f"must be at most {most}")


def check_words(settings: Any, group: str) -> None:
    """Refuses a word that is not one of its field's `Literal` type, and suggests one that is."""
    for name, kind in get_type_hints(type(settings)).items():
        value, words = getattr(settings, name), literal_words(kind)
        nothing = value is None and type(None) in get_args(kind)
        if words and value not in words and not nothing:
            raise ValueError(f"unknown {dotted(group, name)} {suggest(str(value), words)}")


def literal_words(kind: Any) -> list[str]:
    """The words of a `Literal`, or of the one in a union; none of any other type."""
    if get_origin(kind) is Literal:
        return [word for word in get_args(kind) if isinstance(word, str)]
    return [word for part in get_args(kind) if get_origin(part) is Literal for word in get_args(part)]
