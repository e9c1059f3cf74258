"""Families of recipes: one base, one row per method, by `dataclasses.replace` and never by copy."""

from dataclasses import replace
from typing import NamedTuple, TypeVar

from samix.contract import MixupSettings, Plain
from samix.core.words import suggest, suggest_recipe
from samix.engine.optim import Optimizer
from samix.engine.pretrained import PretrainedMixup
from samix.engine.training import POLICIES, Training
from samix.learned import Adjusting, LearnedMixup, MaskLoss, MixerTraining
from samix.methods.supervised import Objective, Supervised
from samix.mixups import MIXUPS
from samix.mixups.published import DataSet, published
from samix.recipes.paper import NO_CELLS, Cells
from samix.runs.mixers import shipped_mixers

Learned = TypeVar("Learned", bound=MixerTraining)


class Family(NamedTuple):
    """Recipes that differ only in how images are mixed."""

    about: str
    """One sentence: data, network, length, what to expect."""
    rows: dict[str, Training]
    default: str = "samix"
    published: DataSet | None = None
    """The paper's table whose settings hand-made mixups without a row take; None: the mixups' own."""
    cells: Cells = NO_CELLS
    """The numbers of the paper's tables that rows reproduce."""


def row(
    base: Training, policy: MixupSettings[Supervised], *, learned: Optimizer | None = None, clean: float = 0.0
) -> Training:
    """The base with a policy; learned policies may have an optimizer of their own."""
    optimizer = learned if learned is not None and policy.learned else base.optimizer
    objective: Objective = replace(base.objective, clean_weight=clean)
    return replace(base, mixup=policy, optimizer=optimizer, objective=objective)


HAND_MADE = ("mixup", "cutmix", "manifoldmix", "saliencymix", "fmix", "puzzlemix", "resizemix")
"""Hand-made mixups of every table with labels, in the order of the paper."""
FROZEN = PretrainedMixup(mixer="runs/imagenet-r18/samix/0", adjusting=Adjusting())
"""SAMix-P as the paper has it: its Mixer learned on ImageNet-1k with ResNet-18 for 100 epochs, and masks are
adjusted by the paper's rule."""


class LearnedRows(NamedTuple):
    """What learned mixups have of their own in a table with labels."""

    samix: LearnedMixup
    automix: LearnedMixup
    optimizer: Optimizer


def table_rows(
    base: Training, data: DataSet, learned: LearnedRows, *, frozen: bool = False
) -> dict[str, Training]:
    """The rows of a table with labels: plain, hand-made mixups as published, AutoMix, SAMix and, where the
    paper has it, SAMix-P."""
    rows = {"plain": row(base, Plain())}
    rows |= {name: row(base, published(name, data)) for name in HAND_MADE}
    if frozen:
        rows["samix-p"] = row(base, FROZEN, clean=1.0)
    for name, policy in (("automix", learned.automix), ("samix", learned.samix)):
        rows[name] = row(base, policy, learned=learned.optimizer, clean=1.0)
    return rows


def short_name(network: str) -> str:
    """A network of the paper's tables in the name of a family.

    >>> short_name("RX-101"), short_name("WRN-28-8")
    ('rx101', 'wrn288')
    """
    return network.lower().replace("-", "")


def as_published(policy: Learned) -> Learned:
    """A learned policy with the paper's settings for runs of 100,000 steps; the defaults suit short ones.

    Two stay ours, because without them masks do not follow lam: gamma starts at 1, and SAMix draws one lam
    per pair (docs/deviations.md; the paper's are mixup.mixer.gamma 0 and mixup.per_sample false).
    """
    variance = 2.0 if policy.mask.variance else 0.0  # AutoMix rewards none
    return replace(
        policy,
        mixer=replace(policy.mixer, init_std=0.01),
        mask=MaskLoss(beta=0.1, beta_end=0.0, margin=0.1, variance=variance),
        copy=replace(policy.copy, momentum=0.999, momentum_end=0.999999),
    )


def speedy(samix: Training) -> Training:
    """SAMix with our speed settings: less for the clean branch, few pictures for the Mixer.

    A clean branch with a head of its own is best saved on by crops of most pictures, one that shares the
    tested head by fewer whole pictures. Below six the Mixer's masks stop following lam: docs/findings.md.
    """
    assert isinstance(samix.mixup, MixerTraining)
    mixup = replace(samix.mixup, speed=replace(samix.mixup.speed, fraction=max(0.1, 6 / samix.batch_size)))
    objective = replace(samix.objective, clean_fraction=0.35)
    if samix.objective.clean_head:
        objective = replace(samix.objective, clean_fraction=0.6, clean_crop=0.625)
    return replace(samix, mixup=mixup, objective=objective)


def find_recipe(families: dict[str, Family], name: str, mixup: str | None = None) -> tuple[str, Training]:
    """The row 'family/row', or a family's row for a mixup; returns its full name and its value.

    A mixup that the family has no row for takes the family's plain row, and the settings of the paper's table
    or its own.
    """
    family_name, _, row_name = name.partition("/")
    if family_name not in families:
        raise ValueError(f"unknown recipe {suggest_recipe(name, families)} See `samix recipes`.")
    family = families[family_name]
    if mixup and row_name and mixup != row_name:
        raise ValueError(f"{name} names its row already; for another write {family_name} --mixup {mixup}.")
    row_name = mixup or row_name or family.default
    if row_name in family.rows:
        return f"{family_name}/{row_name}", family.rows[row_name]
    if row_name in POLICIES:
        if family.published and row_name in MIXUPS:
            mixup_settings = published(row_name, family.published)
        else:
            mixup_settings = POLICIES[row_name]()
        return f"{family_name}/{row_name}", replace(family.rows["plain"], mixup=mixup_settings)
    if mixup in shipped_mixers():
        raise ValueError(f"'{mixup}' is a trained Mixer: --mixup samix-p --mixup.mixer {mixup}.")
    known = [*family.rows, *(policy for policy in POLICIES if policy not in family.rows)]
    what = "mixup" if mixup else f"row of {family_name}"
    raise ValueError(f"unknown {what} {suggest(row_name, known)}")
