"""Odd values for every field on the command line: taken, or refused in a sentence of samix's own.

The sentence names the field and has none of the parser's words; nothing hangs, and nothing is trained.
"""

import random
import time
import zlib

import pytest

from samix.commands import fields
from samix.commands.fields import known_fields, override
from samix.engine.recipe import Recipe
from samix.recipes import find_pretraining, find_recipe

ODD = [
    "",
    " ",
    "null",
    "~",
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "-0",
    "1e400",
    "1.5",
    "0x10",
    "1_000",
    "true",
    "yes",
]
ODD += [
    "9" * 20,
    "9" * 5000,
    "2147483648",
    "[]",
    "[1, 2]",
    "{}",
    "{a: 1}",
    "{",
    "[",
    "'",
    '"',
    "a b",
    "- 1",
    "1:2",
]
ODD += [
    "\x00",
    "\x1b[2J",
    "é",
    "💥",
    "%s",
    "=",
    "--seed",
    "&a *a",
    "!!python/object:os.system",
    "*a",
    "../..",
    "#",
]
ODD += ["/dev/zero", "/", "[" * 50, "null null", "<class 'int'>", "\n", "a\nb", "1,5", "@file", "${HOME}"]
PARSERS = (
    "Parser key",
    "Expected a",
    "<class",
    "Traceback",
    "Problem with",
    "jsonargparse",
    "Namespace",
    "Union[",
)
"""What only the parser says, or Python."""
CALLED = {"data.name": "dataset", "encoder.name": "encoder"}
"""Fields that are not called by their names."""
EACH = 3
"""Odd values for every field."""


@pytest.fixture(scope="module")
def quick():
    """One parser per recipe: making it takes most of the time."""
    known: dict[int, object] = {}
    real = fields.recipe_parser

    def make(base: Recipe) -> object:
        known[id(base)] = real(base)
        return known[id(base)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "recipe_parser", lambda base: known.get(id(base)) or make(base))
        yield


RECIPES: dict[str, Recipe] = {
    "train": find_recipe("demo/samix")[1],
    "train cutmix": find_recipe("cifar100-r18/cutmix")[1],
    "pretrain": find_pretraining("ssl-demo", "moco-v2", "samix-c")[1],
}


def complaint(base: Recipe, field: str, value: str) -> str:
    """What is said of the value; nothing if it is taken."""
    try:
        override(base, [f"--{field}={value}"])
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RECIPES)
def test_invariant_odd_values_are_taken_or_refused_by_the_field(quick, unchecked_shapes, name):
    base, wrong, start = RECIPES[name], {}, time.perf_counter()
    refused = 0
    for field in known_fields(base):
        draw = random.Random(zlib.crc32(f"{name} {field}".encode()))
        for value in draw.sample(ODD, EACH):
            said = complaint(base, field, value)
            refused += bool(said)
            called = CALLED.get(field, field.rpartition(".")[2])
            named = called in said or field in said
            own = named and not any(words in said.replace(value, "") for words in PARSERS)
            if said and not own:
                wrong[field, value] = said
    assert not wrong, "\n".join(f"{field}={value!r}: {said[:200]}" for (field, value), said in wrong.items())
    assert refused > 2 * len(known_fields(base)) and time.perf_counter() - start < 120
