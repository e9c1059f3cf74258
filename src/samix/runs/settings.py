"""Settings as plain values, as config.yaml holds them: flat names, differences, names of older versions."""

from collections.abc import Iterator
from typing import Any

from samix.core.renamed import (
    ADDED,
    ADDED_FIELDS,
    ADDED_TO_POLICIES,
    ADDED_TO_PRETRAININGS,
    ADDED_TO_RECIPES,
    OLD_NAMES,
    rename,
)

MOST = 5
"""How many differences are listed."""
LEARNED_ON_MACHINE = ("precision", "accumulate", "devices", "nodes", "sync_norm")
"""What of the machine changes what is learned."""
NOT_LEARNED_FROM = ("eval_every", "tested_last", "save_every", "data.root", "data.workers")
"""Settings that change where or when a run works, not what it learns."""
LEARNED_GROUPS = tuple(dict.fromkeys([*ADDED, *(new.partition(".")[0] for new in OLD_NAMES.values())]))
"""Groups of their settings."""
LEARNED_MIXUPS = ("automix", "adautomix", "samix", "samix-i", "samix-c")
"""Mixups whose settings had other names before 0.2, or whose parts had."""


def flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """('data.size', 32), ... for nested dictionaries."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def changes_learning(name: str) -> bool:
    """Whether a setting, by its flat name, changes what a run learns."""
    group, _, field = name.partition(".")
    return field in LEARNED_ON_MACHINE if group == "machine" else name not in NOT_LEARNED_FROM


def comparable(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The settings without what changes nothing that is learned: threads, loading, how often it tests."""
    return {
        key: comparable(value, f"{prefix}{key}.") if isinstance(value, dict) else value
        for key, value in values.items()
        if isinstance(value, dict) or changes_learning(prefix + key)
    }


def modernise(values: dict[str, Any]) -> dict[str, Any]:
    """Settings as an older version wrote them under the names of today."""
    known = {group: new for group, new in ADDED_TO_RECIPES.items() if isinstance(values.get(group), dict)}
    whole = "batch_size" in values  # a part of the settings stays one
    fields = ADDED_FIELDS | (ADDED_TO_PRETRAININGS if "method" in values else {}) if whole else {}
    values = fields | values | {group: new | values[group] for group, new in known.items()}
    mixup = values.get("mixup")
    if not isinstance(mixup, dict):
        return values
    own = ADDED_TO_POLICIES.get(str(mixup.get("name")), {}) if whole else {}
    if mixup.get("name") not in LEARNED_MIXUPS:
        return values | {"mixup": completed(mixup, own)}
    if wrong := [group for group in LEARNED_GROUPS if not isinstance(mixup.get(group, {}), dict)]:
        raise ValueError(f"mixup.{wrong[0]} must be settings by name, got {mixup[wrong[0]]!r}.")
    renamed = rename(mixup, OLD_NAMES)
    added = {group: new | renamed[group] for group, new in ADDED.items() if group in renamed}
    return values | {"mixup": own | renamed | added}


def completed(values: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """The values with what came later, also inside their groups.

    >>> completed({"policy": {"alpha": 1}}, {"policy": {"inter": "cutmix"}, "box": "paper"})
    {'box': 'paper', 'policy': {'inter': 'cutmix', 'alpha': 1}}
    """
    groups = {name: new for name, new in added.items() if isinstance(values.get(name), dict)}
    inside = {name: completed(values[name], new) for name, new in groups.items()}
    return {name: new for name, new in added.items() if name not in groups} | values | inside


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    """Fields in which two recipes differ, as 'epochs: there 100, here 50'."""
    if old.get("name") != new.get("name"):  # of another kind: its settings say nothing
        return [f"{prefix}name: there {old.get('name', 'unset')}, here {new.get('name', 'unset')}"]
    found = []
    for key in sorted(set(old) | set(new)):
        a, b = old.get(key, "unset"), new.get(key, "unset")
        if isinstance(a, dict) and isinstance(b, dict):
            found += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append(f"{prefix}{key}: there {a}, here {b}")
    return found


def list_differences(changed: list[str]) -> str:
    """The first differences in one line, and how many more there are."""
    more = f" and {len(changed) - MOST} more" if len(changed) > MOST else ""
    return "; ".join(changed[:MOST]) + more
