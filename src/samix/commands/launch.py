"""What `samix train` and `samix pretrain` share: words in, runs out."""

import argparse
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from samix.commands.dry_run import dry_run
from samix.commands.fields import from_yaml, override, recipe_parser
from samix.core.distributed import rank
from samix.engine.loop import train
from samix.engine.recipe import Recipe
from samix.nn.from_timm import PREFIX
from samix.nn.zoo import ENCODERS
from samix.recipes.ssl_base import row_of
from samix.report import draw_samples
from samix.runs.records import CONFIG, START, read_record


class Command(NamedTuple):
    """What differs between the two commands."""

    name: str
    usage: str
    options: tuple[tuple[str, str], ...]
    """Words that choose a recipe beside its name, with their help."""
    find: Callable[..., tuple[str, Recipe]]
    """(recipe's name, values of the options) -> full name, recipe."""
    default: str
    """The recipe whose fields the help shows."""
    result: Callable[[dict[str, Any]], str]
    """The summary as one sentence."""


def launch(command: Command, words: list[str]) -> list[Path]:
    """Trains one recipe, for one seed or several; returns the run folders."""
    parser = argparse.ArgumentParser(
        prog=f"samix {command.name}", usage=command.usage, add_help=False, allow_abbrev=False
    )
    parser.add_argument("--config", type=Path, help="a YAML file instead of a recipe's name")
    for name, text in command.options:
        parser.add_argument(f"--{name}", help=text)
    parser.add_argument("--out", help="run folder (default: runs/<recipe>/<seed>)")
    parser.add_argument("--seeds", type=int, nargs="+", help="train once per seed, one after another")
    parser.add_argument(
        "--devices", type=int, help="train on this many devices (DDP); short for --machine.devices"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument(
        "--dry-run", action="store_true", help="two steps on random pictures; prints memory and time"
    )
    parser.add_argument("-h", "--help", action="store_true", help="this text and every field of the recipe")
    # Taken off first: argparse would mistake the value of an unknown field for it.
    named = bool(words) and not words[0].startswith("-")
    options, rest = parser.parse_known_args(words[1:] if named else words)
    options.recipe = words[0] if named else None
    if options.help:
        print_help(command, parser, options)
        return []
    name, recipe = choose_recipe(command, options)
    if options.devices is not None:
        rest = [*rest, "--machine.devices", str(options.devices)]
    if options.seeds and any(word.partition("=")[0] == "--seed" for word in rest):
        raise ValueError("--seed and --seeds were both given; name the seeds in one of them.")
    recipe = override(recipe, rest)
    if options.dry_run:
        dry_run(name, recipe)
        return []
    if options.out is not None and not options.out.strip():
        raise ValueError("--out must name a folder, got nothing.")
    folders = []
    for seed in options.seeds or [recipe.seed]:
        folder = Path(options.out) if options.out else Path("runs") / name
        folder = folder / str(seed) if options.seeds or not options.out else folder
        train_one(command, replace(recipe, seed=seed), folder, name, words, quiet=options.quiet)
        folders.append(folder)
    return folders


def choose_recipe(command: Command, options: argparse.Namespace) -> tuple[str, Recipe]:
    """The recipe that the words name, before fields are overridden."""
    if (options.recipe is None) == (options.config is None):
        raise ValueError(
            f"name a recipe, right behind `samix {command.name}`, or a --config file, one of them. "
            "`samix recipes` lists the recipes."
        )
    given = {name: getattr(options, name) for name, _ in command.options}
    if options.recipe is not None:
        return command.find(options.recipe, **given)
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"--{name} goes with a recipe's name; in a --config file write {name}: {{name: ...}}."
            )
    recipe = from_yaml(options.config)
    if recipe.command != command.name:
        raise ValueError(f"{options.config} is for `samix {recipe.command} --config {options.config}`.")
    own = recorded_name(options.config)
    if own is not None:
        return own, recipe
    # A config.yaml without a run goes by the name of its folder.
    stem = options.config.stem if options.config.stem != "config" else options.config.resolve().parent.name
    return f"{stem}/{row_of(recipe)}", recipe


def recorded_name(config: Path) -> str | None:
    """The recipe's name, where the file is a run's own config.yaml."""
    start = read_record(config.parent / START) if config.name == CONFIG else None
    return None if start is None else start.get("name")


def train_one(
    command: Command, recipe: Recipe, folder: Path, name: str, words: list[str], *, quiet: bool
) -> None:
    """One run: trains, draws its samples, says what came out."""
    line = shlex.join(["samix", command.name, *words])
    summary = train(recipe, folder, name=name, command=line, quiet=quiet)
    if rank() > 0:
        return
    draw_samples(folder)
    print(f"{name} seed {recipe.seed}: {command.result(summary)}, {summary['seconds']:.0f} s -> {folder}")


def print_help(command: Command, parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """The command's own words, then every field of the recipe with its present value."""
    if options.recipe is None and options.config is None:
        options.recipe = command.default
    full_name, recipe = choose_recipe(command, options)
    print(parser.format_help())
    fields = recipe_parser(recipe, prog=f"samix {command.name}", usage=argparse.SUPPRESS)
    print(f"fields of {full_name}, with their values there:\n")
    print(fields.format_help())
    print(f"encoders: {', '.join(ENCODERS)}; any network of timm: {PREFIX}NAME")
