"""Settings as plain values: flat names, what changes a run, differences, names of older versions."""

import copy

import pytest
import yaml

from samix.core.renamed import ADDED_TO_POLICIES, ADDED_TO_PRETRAININGS, ADDED_TO_RECIPES, OLD_NAMES
from samix.engine.pretraining import VIEW_POLICIES, Pretraining
from samix.engine.recipe import Recipe, to_dict
from samix.engine.training import POLICIES, Training
from samix.runs.folder import read_run
from samix.runs.settings import (
    LEARNED_MIXUPS,
    changes_learning,
    comparable,
    differences,
    flatten,
    list_differences,
    modernise,
)

NESTED = {
    "epochs": 3,
    "data": {"name": "digits", "root": "/data", "workers": 2},
    "mixup": {"name": "samix", "mixer": {"lambda": {"end": None}}, "empty": {}},
}


# ------------------------------------------------------------ flat names


def test_value_flat_names_in_order():
    assert list(flatten(NESTED)) == [
        ("epochs", 3),
        ("data.name", "digits"),
        ("data.root", "/data"),
        ("data.workers", 2),
        ("mixup.name", "samix"),
        ("mixup.mixer.lambda.end", None),
    ]
    assert list(flatten({})) == [] and list(flatten({"a": 1}, "x.")) == [("x.a", 1)]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("epochs", True),
        ("seed", True),
        ("eval_every", False),
        ("save_every", False),
        ("data.root", False),
        ("data.workers", False),
        ("data.size", True),
        ("mixup.workers", True),
        ("mixup.root", True),
        ("machine.precision", True),
        ("machine.accumulate", True),
        ("machine.devices", True),
        ("machine.nodes", True),
        ("machine.threads", False),
        ("machine.compile", False),
        ("machine.channels_last", False),
        ("machine.tracker", False),
        ("precision", True),
        ("optimizer.machine", True),
    ],
)
def test_value_what_changes_what_is_learned(name, changes):
    assert changes_learning(name) is changes


def test_value_comparable_settings_lack_what_changes_nothing():
    values = {
        "epochs": 3,
        "eval_every": 2,
        "data": {"name": "digits", "root": "/data", "workers": 2},
        "machine": {"threads": 3, "devices": 2, "precision": "32-true", "compile": True},
        "mixup": {"name": "samix", "mixer": {"root": 1, "workers": None}},
    }
    before = copy.deepcopy(values)
    assert comparable(values) == {
        "epochs": 3,
        "data": {"name": "digits"},
        "machine": {"devices": 2, "precision": "32-true"},
        "mixup": {"name": "samix", "mixer": {"root": 1, "workers": None}},
    }
    assert values == before


@pytest.mark.parametrize("recipe", [Training(), Pretraining()], ids=["train", "pretrain"])
def test_invariant_every_setting_is_comparable_or_changes_nothing(recipe):
    flat, kept = dict(flatten(to_dict(recipe))), dict(flatten(comparable(to_dict(recipe))))
    assert kept == {name: value for name, value in flat.items() if changes_learning(name)}
    assert {
        "eval_every",
        "save_every",
        "data.root",
        "data.workers",
        "machine.threads",
    } <= flat.keys() - kept.keys()


# ------------------------------------------------------------ names of older versions


def recipe_with(mixup: str) -> Recipe:
    return (
        Training(mixup=POLICIES[mixup]()) if mixup in POLICIES else Pretraining(mixup=VIEW_POLICIES[mixup]())
    )


@pytest.mark.parametrize("mixup", [name for name in LEARNED_MIXUPS if name != "adautomix"])  # it came later
def test_value_old_settings_of_learned_mixups_under_the_names_of_today(mixup, as_before):
    recipe = recipe_with(mixup)
    old = as_before(to_dict(recipe))
    before = copy.deepcopy(old)
    assert OLD_NAMES.keys() <= old["mixup"].keys()
    assert modernise(old) == to_dict(recipe) and old == before
    assert modernise(to_dict(recipe)) == to_dict(recipe)


def test_invariant_all_learned_mixups_are_modernised_and_no_other():
    known = POLICIES | VIEW_POLICIES
    assert set(LEARNED_MIXUPS) == {name for name, kind in known.items() if kind.learned}
    for name in known.keys() - set(LEARNED_MIXUPS):
        values = {"mixup": {"name": name} | dict.fromkeys(OLD_NAMES, 0.5)}
        assert modernise(values) == values, name


def test_value_older_runs_keep_the_box_that_they_were_trained_with():
    older = {"batch_size": 8, "mixup": {"name": "cutmix", "alpha": 1.0}}
    assert modernise(older)["mixup"] == {"name": "cutmix", "alpha": 1.0, "box": "paper", "minmax": None}
    chosen = {"batch_size": 8, "mixup": {"name": "mixup+cutmix", "box": "whole"}}
    assert modernise(chosen)["mixup"] == chosen["mixup"]


def test_value_settings_that_came_later_have_the_value_of_before():
    for values in (to_dict(Training()), to_dict(Pretraining())):
        older = copy.deepcopy(values)
        for group, added in ADDED_TO_RECIPES.items():
            if group in older:
                assert {name: older[group].pop(name) for name in added} == added  # defaults change nothing
        if "method" in values:
            assert {name: older.pop(name) for name in ADDED_TO_PRETRAININGS} == ADDED_TO_PRETRAININGS
        assert modernise(older) == values


def without(values: dict, added: dict) -> None:
    """Takes what came later out of the values, also inside their groups."""
    for name, new in added.items():
        if isinstance(new, dict):
            without(values[name], new)
        else:
            assert values.pop(name) == new


@pytest.mark.parametrize("name", ["samix-i", "samix-c", "inter-intra"])
def test_value_settings_of_single_mixups_that_came_later(name):
    values = to_dict(Pretraining(mixup=VIEW_POLICIES[name]()))
    older = copy.deepcopy(values)
    without(older["mixup"], ADDED_TO_POLICIES[name])
    assert older != values and modernise(older) == values


def test_value_a_warm_up_of_other_mixups_keeps_its_name():
    values = to_dict(Pretraining(mixup=VIEW_POLICIES["mochi"](warmup=0.25)))
    assert modernise(values) == values and values["mixup"]["warmup"] == 0.25
    other = {"method": {"name": "moco-v2", "momentum": 0.9}, "mixup": {"name": "samix-i", "momentum": 0.8}}
    found = {
        "method": {"name": "moco-v2", "momentum": 0.9},
        "mixup": {"name": "samix-i", "copy": {"momentum": 0.8}},
    }
    assert modernise(other) == found


@pytest.mark.parametrize("values", [{}, {"epochs": 3}, {"mixup": None}, {"mixup": "samix"}, {"mixup": {}}])
def test_value_settings_without_a_mixup_stay_as_they_are(values):
    assert modernise(values) == values


def test_value_a_run_of_an_older_version_is_read_under_the_names_of_today(write_run, as_before):
    recipe = Training(mixup=POLICIES["samix"](eta=0.25))
    path = write_run(finished=False)
    (path / "config.yaml").write_text(yaml.safe_dump(as_before(to_dict(recipe))))
    assert read_run(path).config == to_dict(recipe)


# ------------------------------------------------------------ differences


def test_value_differences():
    old, new = {"a": 1, "b": {"c": 2, "d": 3}, "e": 5}, {"a": 1, "b": {"c": 9, "d": 3}, "f": None}
    found = ["b.c: there 2, here 9", "e: there 5, here unset", "f: there unset, here None"]
    assert differences(old, new) == found
    assert differences(old, old) == []


def test_value_differences_in_depth_and_of_unlike_kinds():
    old, new = {"a": {"b": {"c": 1}}, "d": {"e": 1}}, {"a": {"b": {"c": 2}}, "d": 3}
    assert differences(old, new) == ["a.b.c: there 1, here 2", "d: there {'e': 1}, here 3"]
    assert differences(new, old, "x.") == ["x.a.b.c: there 2, here 1", "x.d: there 3, here {'e': 1}"]


def test_value_of_another_kind_only_its_name_differs():
    old = {"mixup": {"name": "samix", "eta": 0.5, "alpha": 2.0}, "epochs": 3}
    new = {"mixup": {"name": "cutmix", "alpha": 1.0, "prob": 1.0}, "epochs": 4}
    assert differences(old, new) == ["epochs: there 3, here 4", "mixup.name: there samix, here cutmix"]
    assert differences({"name": "a"}, {}) == ["name: there a, here unset"]


@pytest.mark.parametrize(
    ("count", "rest"), [(0, ""), (1, ""), (5, ""), (6, " and 1 more"), (12, " and 7 more")]
)
def test_value_the_first_differences_in_one_line(count, rest):
    changed = [f"f{n}: there {n}, here 9" for n in range(count)]
    assert list_differences(changed) == "; ".join(changed[:5]) + rest
