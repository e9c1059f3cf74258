"""Checks of settings: what passes, what does not, and in which words."""

import math
import re
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import ClassVar, Literal

import pytest

from samix.core.checks import (
    check_at_least,
    check_at_most,
    check_below_one,
    check_fields,
    check_not_negative,
    check_positive,
    check_positive_share,
    check_share,
    check_words,
    dotted,
)

INF, NAN, TINY = math.inf, math.nan, 5e-324
ABOVE, BELOW = math.nextafter(1, 2), math.nextafter(1, 0)

# check, rule, what passes (inside and on an allowed border), what does not (outside, or on another border)
CHECKS = {
    "share": (check_share, "must lie in [0, 1]", [0, -0.0, 0.5, 1, True], [-TINY, ABOVE, -1, 2]),
    "positive share": (
        check_positive_share,
        "must lie in (0, 1]",
        [TINY, 0.5, 1],
        [0, -0.0, -TINY, ABOVE, 2],
    ),
    "below one": (check_below_one, "must lie in [0, 1)", [0, 0.5, BELOW], [1, -TINY, ABOVE, -1]),
    "positive": (check_positive, "must be positive", [TINY, 1, 1e300, 7], [0, -0.0, -TINY, -3]),
    "not negative": (check_not_negative, "must not be negative", [0, -0.0, TINY, 1e300, 7], [-TINY, -3]),
    "at least 3": (partial(check_at_least, 3), "must be at least 3", [3, 4, 10**9], [2, 0, -3, 2.999]),
    "at most 3": (partial(check_at_most, 3), "must be at most 3", [3, 2, -9], [4, 3.001, 10**9]),
}
NEVER = dict.fromkeys(CHECKS, [NAN, INF, -INF]) | {"at least 3": [NAN, -INF], "at most 3": [NAN, INF]}


def cases(which: int) -> list:
    return [
        pytest.param(check, rule, value, id=f"{name}: {value}")
        for name, (check, rule, *values) in CHECKS.items()
        for value in [*values[which], *(NEVER[name] if which else [None])]
    ]


@pytest.mark.parametrize(("check", "rule", "value"), cases(0))
def test_value_what_is_allowed_passes(check, rule, value):
    assert check(SimpleNamespace(eta=value), "mixup", "eta") is None


@pytest.mark.parametrize(("check", "rule", "value"), cases(1))
def test_error_says_which_field_what_is_allowed_and_what_it_got(check, rule, value):
    for group, field in (("mixup", "mixup.eta"), ("mixup.copy", "mixup.copy.eta"), ("", "eta")):
        with pytest.raises(ValueError, match=f"^{re.escape(f'{field} {rule}, got {value}.')}$"):
            check(SimpleNamespace(eta=value), group, "eta")


@pytest.mark.parametrize("name", CHECKS)
def test_error_any_of_several_fields_is_found_and_no_other(name):
    check, _, good, bad = CHECKS[name]
    settings = SimpleNamespace(a=good[0], b=None, c=bad[0], d=bad[0])
    check(settings, "mixup", "a", "b")
    check(settings, "mixup")
    with pytest.raises(ValueError, match=r"^mixup\.c "):
        check(settings, "mixup", "a", "b", "c", "d")
    with pytest.raises(AttributeError, match="missing"):
        check(settings, "mixup", "missing")


def test_error_of_a_rule_of_ones_own():
    settings = SimpleNamespace(side=7, other=None)
    check_fields(settings, "data", ["side", "other"], lambda side: side % 2 == 1, "must be odd")
    with pytest.raises(ValueError, match=r"^data\.side must be even, got 7\.$"):
        check_fields(settings, "data", ["other", "side"], lambda side: side % 2 == 0, "must be even")


def test_value_fields_as_the_command_line_writes_them():
    assert dotted("mixup", "alpha") == "mixup.alpha" and dotted("", "epochs") == "epochs"


Kind = Literal["bilinear", "nearest"]


@dataclass
class Words:
    upsample: Kind = "bilinear"
    layers: tuple[str, ...] = ("not", "a", "choice")
    sides: Literal[1, 2] = 1
    maybe: Kind | None = None
    amount: float | None = None
    note: str = "free text"
    fixed: ClassVar[bool] = True


def test_value_words_of_their_type_pass():
    given = [
        {"upsample": "nearest"},
        {"maybe": "bilinear"},
        {"note": "nearset", "layers": ("x",)},
        {"sides": 3},
    ]
    for fields in ({}, *given):
        check_words(Words(**fields), "mixer")


@pytest.mark.parametrize(("group", "field"), [("mixer", "mixer.upsample"), ("", "upsample")])
def test_error_a_wrong_word_is_named_and_one_is_suggested(group, field):
    words = f"unknown {field} 'nearset'. Did you mean 'nearest'? Available: bilinear, nearest."
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        check_words(Words(upsample="nearset"), group)


@pytest.mark.parametrize("value", ["zzz", "", "Nearest ", None, 3])
def test_error_a_word_far_from_all_is_refused_as_well(value):
    with pytest.raises(
        ValueError, match=rf"^unknown mixer\.upsample '{value}'.*Available: bilinear, nearest\.$"
    ):
        check_words(Words(upsample=value), "mixer")


def test_error_a_wrong_word_where_null_is_allowed():
    words = "unknown mixer.maybe 'nearset'. Did you mean 'nearest'? Available: bilinear, nearest."
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        check_words(Words(maybe="nearset"), "mixer")
