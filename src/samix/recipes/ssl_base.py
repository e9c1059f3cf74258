"""Families of pre-trainings: one base per method, any mixup on each."""

from dataclasses import replace
from typing import Any, NamedTuple

from samix.core.words import suggest, suggest_recipe
from samix.engine.pretraining import VIEW_POLICIES, Pretraining
from samix.engine.recipe import Recipe, choice_name, policy_name
from samix.methods.ssl.base import Terms
from samix.mixups import MIXUPS, CutMix, MixUp, MixupCutMix
from samix.mixups.published import DataSet, published
from samix.recipes.paper import NO_CELLS, Cells


class Preset(NamedTuple):
    """A published method, or a row of a study, that is a policy and its terms."""

    mixup: Any
    terms: Terms


PRESETS = {
    "i-mix": Preset(CutMix(alpha=1.0, box="paper"), Terms(base=0.0, views=1, dominant=True, shared=True)),
    "i-mixup": Preset(
        MixUp(alpha=1.0, per_sample=True), Terms(base=0.0, views=1, dominant=True, shared=True)
    ),
    "un-mix": Preset(MixupCutMix(mixup_alpha=1.0, box="paper"), Terms(views=1, reversed_pairs=True)),
    "bsim": Preset(CutMix(alpha=1.0, box="paper"), Terms(base=0.0)),
    "wbsim": Preset(CutMix(alpha=1.0, box="paper"), Terms(base=0.5, mixed=0.5)),
}
"""i-Mix (CutMix, its ImageNet form; i-mixup is its CIFAR form), Un-Mix, BSIM and WBSIM (arXiv 2011.13356)."""


class PretrainingFamily(NamedTuple):
    """Pre-trainings that differ in method and mixup."""

    about: str
    """One sentence: data, network, length, what to expect."""
    methods: dict[str, Pretraining]
    """A plain recipe per method; the first is the default."""
    mixups: dict[str, Any]
    """Settings of mixups that differ from their defaults here, and variants under names of their own; a
    `Preset` brings terms along."""
    rows: tuple[str, ...]
    """The rows that are measured, here or in the paper; every other METHOD+MIXUP works as well."""
    cells: Cells = NO_CELLS
    """The numbers of the paper's tables that rows reproduce."""
    published: DataSet | None = None
    """Hand-made mixups without settings here are as in the paper's tables of that name; None: as they are."""


def find_pretraining(
    families: dict[str, PretrainingFamily], name: str, method: str | None = None, mixup: str | None = None
) -> tuple[str, Pretraining]:
    """The row 'family/METHOD+MIXUP' with its full name; --method and --mixup stand in for parts of it."""
    family_name, _, row = name.partition("/")
    if family_name not in families:
        raise ValueError(f"unknown recipe {suggest_recipe(name, families)} See `samix recipes`.")
    family = families[family_name]
    row_method, _, row_mixup = row.partition("+")
    method = method or row_method or next(iter(family.methods))
    mixup = mixup or row_mixup or "plain"
    if method not in family.methods:
        raise ValueError(f"unknown method {suggest(method, family.methods)}")
    known = dict.fromkeys([*VIEW_POLICIES, *PRESETS, *family.mixups])
    if mixup not in known:
        raise ValueError(f"unknown mixup {suggest(mixup, known)}")
    full = f"{family_name}/{method}" + ("" if mixup == "plain" else f"+{mixup}")
    return full, with_mixup(family, method, mixup)


def with_mixup(family: PretrainingFamily, method: str, mixup: str) -> Pretraining:
    """A method's plain recipe with a mixup: the family's settings, a preset, as published, or by default."""
    base, settings = family.methods[method], family.mixups.get(mixup, PRESETS.get(mixup))
    if mixup == "plain":
        return base
    if isinstance(settings, Preset):
        return replace(base, mixup=settings.mixup, terms=settings.terms)
    if settings is None and family.published is not None and mixup in MIXUPS:
        settings = published(mixup, family.published)
    return replace(base, mixup=VIEW_POLICIES[mixup]() if settings is None else settings)


def row_of(recipe: Recipe) -> str:
    """What a recipe's row is called: 'cutmix', or of a pre-training 'byol' and 'moco-v2+un-mix'."""
    mixup = policy_name(recipe)
    if not isinstance(recipe, Pretraining):
        return mixup
    found = (name for name, preset in PRESETS.items() if preset == (recipe.mixup, recipe.terms))
    method, mixup = choice_name(recipe, "method"), next(found, mixup)
    return method if mixup == "plain" else f"{method}+{mixup}"


def row_names(method: str, *mixups: str) -> tuple[str, ...]:
    """The names 'moco-v2', 'moco-v2+mixup', ..."""
    return (method, *(f"{method}+{mixup}" for mixup in mixups))
