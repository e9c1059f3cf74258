"""Old names of settings: taken, read and renamed as the new ones would be, with a warning that names them."""

import copy
import pickle
import re
import warnings
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

import pytest

from samix.core.renamed import OLD_NAMES, accept_old_names, default_of, read_old_name, rename
from samix.learned import AutoMixed, ClusterMixup, InstanceMixup, LearnedMixup

KINDS = (LearnedMixup, AutoMixed, InstanceMixup, ClusterMixup)
KNOWN = {
    "beta": ("mask.beta", 0.125),
    "beta_end": ("mask.beta_end", 0.25),
    "mask_margin": ("mask.margin", 0.375),
    "variance_weight": ("mask.variance", 0.625),
    "adjust": ("adjusting.prob", 0.75),
    "adjust_margin": ("adjusting.margin", 0.0625),
    "lam_margin": ("adjusting.lam_margin", 0.03125),
    "warmup": ("adjusting.warmup", 0.875),
    "momentum": ("copy.momentum", 0.9375),
    "momentum_end": ("copy.momentum_end", 0.96875),
    "momentum_hold": ("copy.hold", 0.5),
    "mixer_fraction": ("speed.fraction", 0.1875),
    "mixer_probability": ("speed.prob", 0.3125),
}
"""The new place of each old name, and a value of its own, which is no default."""
VALUES = {old: value for old, (_, value) in KNOWN.items()}


def new_words(kind: type, *old: str) -> dict[str, Any]:
    """The keywords of today that say what these old ones say."""
    given: dict[str, Any] = {}
    for name in old:
        group, part = OLD_NAMES[name].split(".")
        given[group] = replace(given.get(group, getattr(kind(), group)), **{part: VALUES[name]})
    return given


def warned(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if one.category is DeprecationWarning]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request) -> type:
    """Every learned mixup in turn."""
    return request.param


def test_invariant_every_old_name_leads_to_a_setting(kind):
    assert {old: new for old, (new, _) in KNOWN.items()} == OLD_NAMES
    for old, new in OLD_NAMES.items():
        assert attrgetter(new)(kind()) != VALUES[old]
        assert old not in {field.name for field in fields(kind)}


@pytest.mark.parametrize("old", OLD_NAMES)
def test_value_an_old_keyword_sets_what_the_new_one_sets(kind, old):
    with pytest.warns(DeprecationWarning) as caught:
        found = kind(**{old: VALUES[old]})
    assert found == kind(**new_words(kind, old)) != kind()
    assert attrgetter(OLD_NAMES[old])(found) == VALUES[old]
    assert warned(caught) == [f"{old} is now called {OLD_NAMES[old]}."]


def test_value_all_old_keywords_at_once_and_new_ones_beside_them(kind):
    with pytest.warns(DeprecationWarning) as caught:
        found = kind(**VALUES, alpha=3.0, eta=0.25)
    assert found == kind(**new_words(kind, *VALUES), alpha=3.0, eta=0.25)
    assert sorted(warned(caught)) == sorted(f"{old} is now called {new}." for old, new in OLD_NAMES.items())


def test_value_an_old_keyword_keeps_the_rest_of_its_group(kind):
    mask = replace(kind().mask, margin=0.5)
    with pytest.warns(DeprecationWarning):
        found = kind(mask=mask, beta=0.125)
    assert found == kind(mask=replace(mask, beta=0.125))
    assert mask.beta == kind().mask.beta, "what was given stays as it is"


@pytest.mark.parametrize("old", OLD_NAMES)
def test_value_replace_takes_an_old_name(kind, old):
    group, part = OLD_NAMES[old].split(".")
    other = next(each for each in VALUES if OLD_NAMES[each].startswith(f"{group}.") and each != old)
    settings = kind(eta=0.25, **new_words(kind, other))
    with pytest.warns(DeprecationWarning, match=re.escape(f"{old} is now called {OLD_NAMES[old]}.")):
        found = replace(settings, **{old: VALUES[old]})
    expected = replace(settings, **{group: replace(getattr(settings, group), **{part: VALUES[old]})})
    assert found == expected != settings and found.eta == 0.25
    assert attrgetter(OLD_NAMES[other])(found) == VALUES[other]


@pytest.mark.parametrize("old", OLD_NAMES)
def test_value_an_old_attribute_is_read(kind, old):
    settings = kind(**new_words(kind, old))
    with pytest.warns(DeprecationWarning) as caught:
        assert getattr(settings, old) == VALUES[old]
    assert warned(caught) == [f"{old} is now called {OLD_NAMES[old]}."]


def test_value_new_names_do_not_warn(kind):
    with warnings.catch_warnings(action="error"):
        settings = kind(**new_words(kind, *VALUES))
        assert settings.mask.beta == VALUES["beta"] and settings.copy.hold == VALUES["momentum_hold"]
        for twin in (copy.deepcopy(settings), pickle.loads(pickle.dumps(settings)), replace(settings)):
            assert twin == settings


def test_error_unknown_names_fail_as_ever(kind):
    with pytest.raises(TypeError, match="betta"):
        kind(betta=0.1)
    with pytest.raises(TypeError, match="betta"):
        replace(kind(), betta=0.1)
    with pytest.raises(AttributeError, match=rf"'{kind.__name__}' has no setting 'betta'\."):
        _ = kind().betta
    assert not hasattr(kind(), "betta") and not hasattr(kind(), "__nothing__")


def test_error_a_bad_value_is_named_by_its_new_place(kind):
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(ValueError, match=r"mixup\.speed\.fraction must lie"),
    ):
        kind(mixer_fraction=2.0)


# ------------------------------------------------------------ any table, any dataclass


@dataclass(frozen=True, kw_only=True)
class Oven:
    heat: int = 180
    fan: bool = False


@accept_old_names({"temperature": "oven.heat"})
@dataclass(frozen=True, kw_only=True)
class Cake:
    oven: Oven = field(default_factory=lambda: Oven(fan=True))
    eggs: int = 3


def test_value_the_default_of_a_field_is_the_dataclasss_own():
    assert default_of(Cake, "oven") == Oven(fan=True)
    with pytest.warns(DeprecationWarning, match="temperature is now called oven.heat"):
        assert Cake(temperature=200, eggs=2) == Cake(oven=Oven(heat=200, fan=True), eggs=2)


def test_value_reading_goes_by_the_table():
    table = {"temperature": "oven.heat"}
    with pytest.warns(DeprecationWarning, match="temperature is now called oven.heat"):
        assert read_old_name(Cake(), "temperature", table) == 180
    with pytest.raises(AttributeError, match=r"'Cake' has no setting 'eggs'\."):
        read_old_name(Cake(), "eggs", table)


def test_value_plain_values_are_renamed_and_the_input_stays():
    table = {"temperature": "oven.heat", "air": "oven.fan", "sugar": "bowl.sugar"}
    values = {"name": "cake", "temperature": 200, "oven": {"fan": True}, "sugar": 5, "eggs": 3}
    before = copy.deepcopy(values)
    found = rename(values, table)
    assert found == {"name": "cake", "oven": {"fan": True, "heat": 200}, "bowl": {"sugar": 5}, "eggs": 3}
    assert values == before
    assert rename({"temperature": 1, "air": 2}, table) == {"oven": {"heat": 1, "fan": 2}}


def test_value_what_has_no_old_name_is_not_renamed():
    for values in ({}, {"oven": {"temperature": 200}, "eggs": None}):
        assert rename(values, {"temperature": "oven.heat"}) == values


SCRIPT = """
from samix.learned import LearnedMixup
settings = LearnedMixup(beta=0.5)
settings.momentum
"""


@pytest.mark.slow
def test_value_the_warnings_name_the_lines_that_use_old_names(start, tmp_path):
    """In another process: the shape checks of the tests would stand between the warning and its place."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    shown = start(script).stderr
    for line, words in ((3, "beta is now called mask.beta"), (4, "momentum is now called copy.momentum")):
        assert f"{script}:{line}: DeprecationWarning: {words}." in shown
