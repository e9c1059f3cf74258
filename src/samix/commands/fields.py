"""Recipes on the command line and in YAML files: every field by its dotted name, checked by name and type."""

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import ArgumentParser, set_parsing_settings

from samix.engine.config import POLICIES, Recipe, to_dict
from samix.errors import suggest

set_parsing_settings(docstring_parse_attribute_docstrings=True)


def recipe_parser(base: Recipe, **options: Any) -> ArgumentParser:
    """A parser with one option per field of the recipe, its present value as the default."""
    parser = ArgumentParser(exit_on_error=False, **options)
    parser.add_class_arguments(Recipe, skip={"mixup"})
    parser.add_class_arguments(type(base.mixup), "mixup")
    values = to_dict(base)
    values["mixup"].pop("name")
    parser.set_defaults(dict(flatten(values)))
    return parser


def override(base: Recipe, words: list[str]) -> Recipe:
    """The recipe with the fields that `--field value` words name."""
    known = [name for name, _ in flatten(to_dict(base))]
    for word in words:
        name = word.removeprefix("--").partition("=")[0]
        if word.startswith("--") and name not in known:
            raise ValueError(
                f"unknown field {suggest(name, known, most=0)} `samix train RECIPE --help` lists all."
            )
    parser = recipe_parser(base)
    return _recipe(parser, lambda: parser.parse_args(words))


def from_yaml(path: Path) -> Recipe:
    """The recipe of a YAML file, as every run folder has one; missing fields take their defaults."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Expected a YAML file such as a run's config.yaml.")
    try:
        values = yaml.safe_load(path.read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold fields of a recipe, got {type(values).__name__}.")
    mixup = values.pop("mixup", None) or {}
    mixup = {"name": mixup} if isinstance(mixup, str) else dict(mixup)
    name = mixup.pop("name", "plain")
    if name not in POLICIES:
        raise ValueError(f"{path}: unknown mixup {suggest(name, POLICIES)}")
    base = Recipe(mixup=POLICIES[name]())
    known = [field for field, _ in flatten(to_dict(base))]
    for field, _ in flatten(values | {"mixup": mixup}):
        if field not in known:
            raise ValueError(f"{path}: unknown field {suggest(field, known, most=0)}")
    parser = recipe_parser(base)
    if mixup:
        values["mixup"] = mixup
    return _recipe(parser, lambda: parser.parse_object(values))


def _recipe(parser: ArgumentParser, parse: Any) -> Recipe:
    try:
        found = parser.instantiate(parse())
    except (argparse.ArgumentError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return Recipe(**{field.name: found[field.name] for field in fields(Recipe)})


def flatten(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """('data.size', 32), ... for nested dictionaries."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
