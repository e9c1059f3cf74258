"""The runs of a suite: which rows with which seeds, where their folders are, what may stand in them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from samix.commands.fields import from_yaml, override
from samix.core.words import suggest, suggest_recipe
from samix.engine.recipe import Recipe, to_dict
from samix.recipes import PRETRAININGS, RECIPES, find_pretraining, find_recipe
from samix.runs.files import SUMMARY
from samix.runs.settings import comparable, differences, list_differences

DEFAULT_RUNS = Path("runs")


class Planned(NamedTuple):
    """One run of a suite: a row with a seed."""

    family: str
    row: str
    recipe: Recipe
    """With the suite's fields and the run's seed."""
    folder: Path
    words: tuple[str, ...]
    """What `samix` is told to train it, without what bounds its threads."""

    @property
    def seed(self) -> int:
        """The seed of everything random in the run."""
        return self.recipe.seed

    @property
    def name(self) -> str:
        """'demo/samix seed 0'."""
        return f"{self.family}/{self.row} seed {self.seed}"


def plan_suite(
    family: str, rows: Sequence[str] | None, seeds: Sequence[int], runs: Path, fields: Sequence[str] = ()
) -> list[Planned]:
    """The runs of a family's rows (all, if none are named), seed by seed; `fields` override every row's."""
    known = RECIPES | PRETRAININGS
    if family not in known:
        hint = "" if "/" not in family else f" Rows go behind --rows: samix bench {family.split('/')[0]} ..."
        raise ValueError(f"unknown suite {suggest_recipe(family, known)}{hint}")
    names = dict.fromkeys(rows or known[family].rows)
    return [plan_run(family, row, seed, runs, fields) for seed in seeds for row in names]


def plan_run(family: str, row: str, seed: int, runs: Path, fields: Sequence[str] = ()) -> Planned:
    """One row with one seed; any row that `samix train` knows, or `samix pretrain`."""
    find = find_pretraining if family in PRETRAININGS else find_recipe
    full, base = find(f"{family}/{row}")
    try:
        recipe = replace(override(base, list(fields)), seed=seed)
    except ValueError as error:
        raise ValueError(f"{full}: {error}") from error
    folder = folder_of(runs, family, row, seed)
    words = [recipe.command, f"{family}/{row}", "--seed", str(seed), *fields]
    if runs != DEFAULT_RUNS:
        words += ["--out", str(folder)]
    return Planned(family, row, recipe, folder, tuple(words))


def folder_of(runs: Path, family: str, row: str, seed: int) -> Path:
    """The run folder that `samix train` uses by default."""
    return runs / family / row / str(seed)


def is_finished(folder: Path) -> bool:
    """A run with a summary is finished."""
    return (folder / SUMMARY).exists()


def check_settings(folder: Path, recipe: Recipe) -> None:
    """Refuses a finished run of other settings: its numbers would stand under a name that is not theirs."""
    if not is_finished(folder):
        return
    there, here = (comparable(to_dict(each)) for each in (from_yaml(folder / "config.yaml"), recipe))
    if changed := differences(there, here):
        raise ValueError(
            f"{folder} holds a run of other settings: {list_differences(changed)}. Remove it, or choose "
            "another folder of runs with --runs."
        )


def baselines_of(rows: Sequence[str], chosen: str | None = None) -> dict[str, str]:
    """What each row is compared with: the chosen row, else the one that mixes nothing, where it is there.

    >>> baselines_of(["byol", "moco-v2", "moco-v2+cutmix"])
    {'byol': 'byol', 'moco-v2': 'moco-v2', 'moco-v2+cutmix': 'moco-v2'}
    """
    if chosen is not None and chosen not in rows:
        raise ValueError(f"--baseline: unknown row {suggest(chosen, rows)}")
    wanted = {row: chosen or ("plain" if "plain" in rows else row.partition("+")[0]) for row in rows}
    return {row: baseline for row, baseline in wanted.items() if baseline in rows}
