"""samix train RECIPE|--config FILE [--mixup NAME] [--out FOLDER] [--seeds N...] [--any.field value]"""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from torch import distributed

import samix  # noqa: F401  (prepares torchvision)
from samix.commands.fields import from_yaml, override, recipe_parser
from samix.engine.config import POLICIES, Recipe, policy_name
from samix.engine.loop import train
from samix.recipes import find_recipe
from samix.report import draw_samples

USAGE = """samix train RECIPE [--mixup NAME] [--out FOLDER] [--seeds N ...] [--field value ...]
       samix train --config FILE ...

RECIPE is a family or family/row; `samix recipes` lists them.

examples:
  samix train demo/samix
  samix train cifar10-small --mixup cutmix --seeds 0 1 2
  samix train cifar100-r18/samix --data.root data --devices 4 --machine.precision bf16-mixed
  samix train demo/samix --mixup.eta 0.1 --epochs 20 --out runs/eta01"""


def run(words: list[str]) -> None:
    """Trains one recipe, for one seed or several."""
    parser = argparse.ArgumentParser(prog="samix train", usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--config", type=Path, help="a YAML file instead of a recipe's name")
    parser.add_argument("--mixup", help=f"how images are mixed: {', '.join(POLICIES)}")
    parser.add_argument("--out", type=Path, help="run folder (default: runs/<recipe>/<seed>)")
    parser.add_argument("--seeds", type=int, nargs="+", help="train once per seed, one after another")
    parser.add_argument(
        "--devices", type=int, help="train on so many devices (DDP); short for --machine.devices"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("-h", "--help", action="store_true", help="this text and every field of the recipe")
    # Taken off first: argparse would mistake the value of an unknown field for it.
    named = bool(words) and not words[0].startswith("-")
    options, rest = parser.parse_known_args(words[1:] if named else words)
    options.recipe = words[0] if named else None
    if options.help:
        print_help(parser, options.recipe or "demo", options.mixup)
        return
    name, recipe = choose(options)
    if options.devices is not None:
        rest = [*rest, "--machine.devices", str(options.devices)]
    recipe = override(recipe, rest)
    for seed in options.seeds or [recipe.seed]:
        folder = options.out or Path("runs") / name
        folder = folder / str(seed) if options.seeds or not options.out else folder
        train_one(replace(recipe, seed=seed), folder, name, words, quiet=options.quiet)


def choose(options: argparse.Namespace) -> tuple[str, Recipe]:
    """The recipe that the words name, before fields are overridden."""
    if (options.recipe is None) == (options.config is None):
        raise ValueError("name a recipe or a --config file, one of them. `samix recipes` lists the recipes.")
    if options.recipe is not None:
        return find_recipe(options.recipe, options.mixup)
    recipe = from_yaml(options.config)
    if options.mixup is not None:
        raise ValueError("--mixup goes with a recipe's name; in a --config file write mixup: {name: ...}.")
    return f"{options.config.stem}/{policy_name(recipe.mixup)}", recipe


def train_one(recipe: Recipe, folder: Path, name: str, words: list[str], *, quiet: bool) -> None:
    """One run: trains, draws its samples, says what came out."""
    command = shlex.join(["samix", "train", *words])
    summary = train(recipe, folder, name=name, command=command, quiet=quiet)
    if distributed.is_initialized() and distributed.get_rank() > 0:
        return
    draw_samples(folder)
    print(
        f"{name} seed {recipe.seed}: top-1 {summary['top1']:.2f} % (median of the last 10 epochs), "
        f"best {summary['best']:.2f}, {summary['seconds']:.0f} s -> {folder}"
    )


def print_help(parser: argparse.ArgumentParser, name: str, mixup: str | None) -> None:
    """The command's own words, then every field of the recipe with its present value."""
    full_name, recipe = find_recipe(name, mixup)
    print(parser.format_help())
    fields = recipe_parser(recipe, prog="samix train", usage=argparse.SUPPRESS)
    print(f"fields of {full_name}, with their values there:\n")
    print(fields.format_help())
