"""Which runs belong together: the same family and row, and settings that differ in the seed alone.

Runs are compared where they were tested on the same pictures with the same network; what differs otherwise in
one family gets tables of its own.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from samix import learned
from samix.runs.folder import Run
from samix.runs.settings import changes_learning, flatten

LEARNED = (*learned.LEARNED, *learned.LEARNED_WITHOUT_LABELS)
ORDER = ("plain", "mixup", "cutmix")
"""The order in tables and legends: no mixup, these, other hand-made ones, at last the learned ones."""

SETUP = (
    "data.name", "data.root", "data.test", "data.test_pictures", "data.subset_seed", "encoder.name",
    "encoder.width",
)  # fmt: skip
"""Settings in which runs must agree to be compared."""

Settings = dict[str, str]
"""Settings by their dotted names, as the text that a label shows."""


class Group(NamedTuple):
    """The same experiment with several seeds."""

    family: str
    method: str
    runs: tuple[Run, ...]
    """One per seed."""
    copies: tuple[Run, ...] = ()
    """Further runs of the same seeds: no further evidence, so nothing counts them."""

    @property
    def accuracy(self) -> str:
        """The test of an epoch: 'knn' of a pre-training, else 'top1'."""
        return "knn" if "method" in self.runs[0].config else "top1"

    @property
    def mixup(self) -> str:
        """The policy's name, without what the label adds to it."""
        return self.runs[0].mixup


def split_recipe(run: Run) -> tuple[str, str]:
    """Family and row: ('demo', 'samix-fast'), or ('ssl-demo/moco-v2', 'bsim') of a pre-training.

    Pre-trainings are compared method by method, so their method belongs to the family.
    """
    family, _, row = run.recipe.rpartition("/")
    method, _, mixup = row.partition("+")
    if method == (run.config.get("method") or {}).get("name"):
        return f"{family}/{method}".lstrip("/"), mixup or "plain"
    return family, row


def method_label(run: Run) -> str:
    """The row's name, with '+ clean' where a hand-made mixup has a clean branch; a method alone: its name."""
    row, method = split_recipe(run)[1], (run.config.get("method") or {}).get("name")
    if row == "plain" and method is not None:  # a pre-training without mixup goes by what it learns
        return str(method)
    objective = run.config.get("objective") or {}
    clean = (objective.get("clean_weight") or 0) > 0 and run.mixup not in (*LEARNED, "plain")
    return row.removesuffix("-clean") + " + clean" if clean else row


def learning_settings(run: Run) -> Settings:
    """The row and the settings that decide what a run learns."""
    settings = {name: str(value) for name, value in flatten(run.config) if changes_learning(name)}
    settings.pop("seed", None)
    # Two rows may have one label: a clean branch can be the row's own or an option of another row.
    return {"row": split_recipe(run)[1]} | settings


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """Groups over seeds, family by family, in the order of the tables.

    Runs of one name but with different settings are never averaged: their labels say what differs.
    """
    named: dict[tuple[str, str], dict[Any, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for family, run in with_families(list(runs)):
        settings = tuple(sorted(learning_settings(run).items()))
        named[family, method_label(run)][settings].append(run)
    groups = [
        one_per_seed(family, label + difference, members)
        for (family, label), kinds in named.items()
        for difference, members in zip(difference_labels(list(map(dict, kinds))), kinds.values(), strict=True)
    ]
    return sorted(groups, key=sort_key)


def with_families(runs: list[Run]) -> list[tuple[str, Run]]:
    """Every run with the name of its family; where data or networks differ in one, the name says how."""
    setups: dict[str, dict[Any, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        setup = tuple(setup_of(run).items())
        setups[split_recipe(run)[0]][setup].append(run)
    return [
        (family + difference, run)
        for family, kinds in setups.items()
        for difference, members in zip(difference_labels(list(map(dict, kinds))), kinds.values(), strict=True)
        for run in members
    ]


def setup_of(run: Run) -> Settings:
    """The pictures that a run was tested on and its network, as far as its settings tell them."""
    settings, data = learning_settings(run), run.config.get("data") or {}
    if data.get("name") in ("folder", "pictures"):  # elsewhere it tells where a known set lies, not which
        settings["data.root"] = Path(str(data.get("root"))).name
    return {name: settings[name] for name in SETUP if name in settings}


def one_per_seed(family: str, method: str, runs: Iterable[Run]) -> Group:
    """The group of these runs; of several with one seed a finished one counts."""
    kept: dict[int, Run] = {}
    ordered = sorted(runs, key=lambda run: (run.seed, run.summary is None))
    copies = tuple(run for run in ordered if kept.setdefault(run.seed, run) is not run)
    return Group(family, method, tuple(kept.values()), copies)


def difference_labels(kinds: list[Settings], most: int = 3) -> list[str]:
    """For each kind of runs ' [epochs 50]': settings in which the kinds differ, or '' for a single kind.

    The first few are shown, and as many more as it takes to tell all kinds apart.
    """
    names = sorted({name for each in kinds for name in each}, key=lambda name: (is_detail(name), name))
    varied = [name for name in names if len(set(setting_labels(kinds, [name]))) > 1]
    shown = varied[:most]
    for name in varied[most:]:
        if len(set(setting_labels(kinds, [*shown, name]))) > len(set(setting_labels(kinds, shown))):
            shown.append(name)
    return setting_labels(kinds, shown)


def setting_labels(kinds: list[Settings], names: list[str]) -> list[str]:
    """For each kind of runs the named settings as the end of a label: ' [epochs 50]', or '' without names."""
    texts = [", ".join(f"{name} {each.get(name, 'unset')}" for name in names) for each in kinds]
    return [f" [{text}]" if text else "" for text in texts]


def is_detail(name: str) -> bool:
    """Whether a setting tells less than what something is: its row, or a name such as mixup.name."""
    return name != "row" and not name.endswith(".name")


def sort_key(group: Group) -> tuple[str, int, str, str]:
    """Sort key: plain first, then hand-made, then learned policies."""
    known = (*ORDER, "", *LEARNED)
    rank = known.index(group.mixup) if group.mixup in known else len(ORDER)
    return group.family, rank, group.mixup, group.method
