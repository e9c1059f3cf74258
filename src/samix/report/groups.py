"""Which runs belong together: the same family and method, and settings that differ in the seed alone."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from samix.report.runs import Run

LEARNED = ("automix", "samix")
ORDER = ("plain", "mixup", "cutmix")
"""The order in tables and legends: no mixup, hand-made ones, learned ones, the paper's last."""

NOT_LEARNED_FROM = ("seed", "machine.", "eval_every", "save_every", "data.root", "data.workers")
"""Settings (or their beginnings) that change where or when a run works, not what it learns."""


class Group(NamedTuple):
    """The same experiment with several seeds."""

    family: str
    method: str
    runs: tuple[Run, ...]

    @property
    def accuracy(self) -> str:
        """The test of an epoch: 'knn' of a pre-training, else 'top1'."""
        return "knn" if "method" in self.runs[0].config else "top1"

    @property
    def mixup(self) -> str:
        """The policy's name, without what the label adds to it."""
        return self.runs[0].mixup


def split_recipe(recipe: str, mixup: str) -> tuple[str, str]:
    """Family and variant: ('table4/r18', 'fast') out of 'table4/r18-samix-fast' with samix."""
    match = re.search(rf"(?:^|(?<=[/+-])){re.escape(mixup)}(?:-([^/]*))?$", recipe)
    if match is None:
        return recipe, ""
    return recipe[: match.start()].rstrip("/+-"), match[1] or ""


def method_label(run: Run) -> str:
    """The policy's name, '+ clean' for a hand-made one with a clean branch, and the recipe's variant."""
    variant = split_recipe(run.recipe, run.mixup)[1]
    objective = run.config.get("objective") or {}
    clean = objective.get("clean_weight", 0) > 0 and run.mixup not in (*LEARNED, "plain")
    if clean and variant == "clean":
        variant = ""
    return run.mixup + (" + clean" if clean else "") + (f" ({variant})" if variant else "")


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level: {'optimizer.lr': 0.1}."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, dict)
        flat |= flatten(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return flat


def learned_from(run: Run) -> dict[str, Any]:
    """The settings that decide what a run learns."""
    return {k: v for k, v in flatten(run.config).items() if not k.startswith(NOT_LEARNED_FROM)}


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """Groups over seeds, family by family, in the order of the tables.

    Runs of one name but with different settings are never averaged: their labels say what differs.
    """
    named: dict[tuple[str, str], dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        family = split_recipe(run.recipe, run.mixup)[0]
        settings = json.dumps(learned_from(run), sort_keys=True, default=str)
        named[family, method_label(run)][settings].append(run)
    groups = [
        Group(family, label + difference, tuple(sorted(members, key=lambda run: run.seed)))
        for (family, label), kinds in named.items()
        for difference, members in zip(differences(list(kinds.values())), kinds.values(), strict=True)
    ]
    return sorted(groups, key=place)


def differences(kinds: list[list[Run]], most: int = 3) -> list[str]:
    """For each kind of runs ' [epochs 50]': the first settings in which the kinds differ, or ''."""
    settings = [learned_from(runs[0]) for runs in kinds]
    names = sorted({name for each in settings for name in each})
    varied = [name for name in names if len({str(each.get(name, "unset")) for each in settings}) > 1][:most]
    if not varied:
        return [""] * len(kinds)
    return [" [" + ", ".join(f"{k} {each.get(k, 'unset')}" for k in varied) + "]" for each in settings]


def place(group: Group) -> tuple[str, int, str, str]:
    """Sort key: plain first, then hand-made, then learned policies."""
    known = (*ORDER, "", *LEARNED)
    rank = known.index(group.mixup) if group.mixup in known else len(ORDER)
    return group.family, rank, group.mixup, group.method
