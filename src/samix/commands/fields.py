"""Recipes on the command line and in YAML files: every field by its dotted name, checked by name and type."""

import argparse
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from jsonargparse import ArgumentParser, Namespace, set_parsing_settings

from samix.core.renamed import OLD_NAMES
from samix.core.words import suggest
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import Recipe, to_dict
from samix.engine.training import Training
from samix.runs.records import read_settings
from samix.runs.settings import flatten

AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)

set_parsing_settings(docstring_parse_attribute_docstrings=True)


def recipe_parser(base: Recipe, **options: Any) -> ArgumentParser:
    """A parser with one option per field of the recipe, its present value as the default."""
    parser = ArgumentParser(exit_on_error=False, add_help=False, **options)
    parser.add_class_arguments(type(base), skip=set(base.choices))
    values = to_dict(base)
    for name in base.choices:
        parser.add_class_arguments(type(getattr(base, name)), name)
        values[name].pop("name")
    parser.set_defaults(dict(flatten(values)))
    for action in parser._actions:
        if action.metavar == "CONFIG":  # a file per group of fields: --config holds them all
            action.help = argparse.SUPPRESS
    return parser


def override(base: AnyRecipe, words: list[str]) -> AnyRecipe:
    """The recipe with the fields that `--field value` words name."""
    words, known = [use_new_name(base, word) for word in words], known_fields(base)
    check_lengths(words)
    for word in words:
        name = word.removeprefix("--").partition("=")[0]
        if not word.startswith("--") or name in known:
            continue
        choice, _, rest = name.partition(".")
        if choice in base.choices and rest == "name":
            raise ValueError(f"--{name} cannot be set on its own; choose it with --{choice} NAME.")
        # The last part of a name is what one remembers: --lr for --optimizer.lr.
        last = [field for field in known if field.endswith(f".{name}")]
        hint = f"'{name}'. Did you mean '{last[0]}'?" if last else suggest(name, known, most=0)
        raise ValueError(f"unknown field {hint} `samix {base.command} RECIPE --help` lists all.")
    parser = recipe_parser(base)
    return parse_recipe(base, parser, lambda: parser.parse_args(words), where="--")


def check_lengths(words: list[str]) -> None:
    """Refuses values that are longer than any path, and than any number that Python reads."""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        name, equals, value = word.partition("=")
        value = value if equals else following
        if word.startswith("--") and len(value) > LONGEST:
            raise ValueError(f"{name} must have at most {LONGEST} characters, got {len(value)}.")


def use_new_name(base: Recipe, word: str) -> str:
    """Replaces the old name of a setting (`--mixup.beta`) by its new one (`--mixup.mask.beta`), and warns."""
    name, equals, value = word.removeprefix("--").partition("=")
    group, _, field = name.partition(".")
    if not word.startswith("--") or group != "mixup" or not base.mixup.learned or field not in OLD_NAMES:
        return word
    new = f"mixup.{OLD_NAMES[field]}"
    warnings.warn(f"--{name} is now called --{new}.", FutureWarning, stacklevel=2)
    return f"--{new}{equals}{value}"


def from_yaml(path: Path) -> Recipe:
    """The recipe of a YAML file, as every run folder has one; missing fields take their defaults."""
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path} {problem}. Expected a YAML file such as a run's config.yaml.")
    values = read_settings(path)
    base, chosen = take_choices(path, values)
    known = known_fields(base)
    for field, value in flatten(values | chosen):
        if field not in known:
            raise ValueError(f"{path}: unknown field {suggest(field, known, most=0)}")
        if value is None and field not in nullable_fields(base):
            raise ValueError(f"{path}: {field} must have a value, got null.")
    parser = recipe_parser(base)
    values |= {name: settings for name, settings in chosen.items() if settings}
    return parse_recipe(base, parser, lambda: parser.parse_object(values), where=f"{path}: ")


def take_choices(path: Path, values: dict[str, Any]) -> tuple[Recipe, dict[str, Any]]:
    """Takes mixup and method out of `values`: a recipe of the types they name, and their settings.

    A file that names a method is a pre-training.
    """
    kind = Pretraining if "method" in values else Training
    types, chosen = {}, {}
    for field, table in kind.choices.items():
        settings = values.pop(field, None) or {}
        settings = {"name": settings} if isinstance(settings, str) else settings
        if not isinstance(settings, dict):
            raise ValueError(
                f"{path}: {field} must be a name, or settings with a name among them; got {settings!r}."
            )
        settings = dict(settings)
        name = str(settings.pop("name", next(iter(table)) if field == "mixup" else "moco-v2"))
        if name not in table:
            raise ValueError(f"{path}: unknown {field} {suggest(name, table)}")
        types[field], chosen[field] = table[name](), settings
    return kind(**types), chosen


def known_fields(base: Recipe) -> list[str]:
    """The dotted names of all fields, without the names of the choices themselves."""
    names = [name for name, _ in flatten(to_dict(base))]
    return [name for name in names if name not in {f"{choice}.name" for choice in base.choices}]


def nullable_fields(settings: Any, prefix: str = "") -> Iterator[str]:
    """The dotted names of the fields that may be null."""
    for name, kind in get_type_hints(type(settings)).items():
        value = getattr(settings, name)
        if is_dataclass(value):
            yield from nullable_fields(value, f"{prefix}{name}.")
        elif type(None) in get_args(kind):
            yield f"{prefix}{name}"


def parse_recipe(
    base: AnyRecipe, parser: ArgumentParser, parse: Callable[[], Namespace], where: str
) -> AnyRecipe:
    """A recipe of the same type as `base` from what `parse` reads; `where` begins what an error says."""
    try:
        found = parser.instantiate(parse())
    except (argparse.ArgumentError, TypeError) as error:
        raise ValueError(explain(" ".join(str(error).split()), where)) from error
    return type(base)(**{field.name: found[field.name] for field in fields(base)})


LONGEST = 4096
"""Characters of a value; the longest path of most systems."""

KINDS = {
    "int": "a whole number",
    "float": "a finite number",
    "bool": "true or false",
    "str": "a word",
    "tuple": "a list such as [0.2, 0.8]",
    "NoneType": "null",
}


def explain(text: str, where: str) -> str:
    """The parser's complaint as one sentence: which field, what it must be, what it got.

    The command line (`where` is '--') writes fields as options; a file's name stands before its fields.
    """
    if stray := re.fullmatch(r"unrecognized arguments: (.+)", text):
        return (
            f"{stray[1]!r} stands alone: settings are written --field value, a mixup --mixup NAME or "
            "FAMILY/NAME."
        )
    # A field that may be null is complained of twice: what was really given stands last.
    named = re.search(r'Parser key "([^"]+)".*(?:Given|Got) value:(.*)$', text)
    if named is None:
        return text
    field, value = named[1], named[2].strip()
    value = "null" if value == "None" else value
    kinds = list(dict.fromkeys(re.findall(r"Expected a <class '(\w+)'>", text)))
    kinds.sort(key=lambda kind: kind == "NoneType")  # some versions of the parser put it first
    if literal := re.search(r"Expected a typing\.Literal\[(.*?)\]", text):
        words = re.findall(r"'([^']*)'", literal[1]) + ["null"] * ("NoneType" in kinds)
        return f"{where.removeprefix('--')}unknown {field} {suggest(value, words)}"
    if not kinds or not set(kinds) <= set(KINDS):
        return text
    return f"{where}{field} must be {' or '.join(KINDS[kind] for kind in kinds)}, got {value or 'nothing'}."
