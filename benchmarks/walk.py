"""The walk of one training step through the source: which files a reader opens, and how often they change.

    python benchmarks/walk.py digits/samix                    the walk, file by file, and its two numbers
    python benchmarks/walk.py ssl-demo/moco-v2+samix-i --json the numbers alone

Every call of a function of samix is followed, from the losses of a batch to the progress bar; a change is a
call in another file than the call before it. Calls of torch, timm and Fabric do not count.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import samix
from samix.data.datasets import load_data
from samix.data.loaders import TrainPlan, make_loader
from samix.engine.progress import Progress
from samix.engine.recipe import Recipe
from samix.engine.setup import make_fabric, prepare
from samix.engine.step import Meter, check_finite, train_step
from samix.engine.tasks import task_of
from samix.engine.testing import on_device
from samix.recipes import PRETRAININGS, find_pretraining, find_recipe

SOURCE = Path(samix.__file__).parent


class Stop(NamedTuple):
    """Calls of functions of one file, one after another."""

    file: str
    functions: list[str]


def follow(step: Callable[[], object]) -> list[Stop]:
    """The walk through samix's own files while `step` runs."""
    walk: list[Stop] = []

    def see(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event != "call" or not path.is_relative_to(SOURCE) or frame.f_code.co_name.startswith("<"):
            return
        file = str(path.relative_to(SOURCE))
        if not walk or walk[-1].file != file:
            walk.append(Stop(file, []))
        walk[-1].functions.append(frame.f_code.co_name)

    sys.setprofile(see)
    try:
        step()
    finally:
        sys.setprofile(None)
    return walk


def one_step(recipe: Recipe) -> Callable[[], None]:
    """What the loop does with a batch, once everything is set up and the first step is done."""
    fabric, task, split = make_fabric(recipe), task_of(recipe), load_data(recipe.data)
    fabric.launch()
    with tempfile.TemporaryDirectory() as folder:
        model, wrapped, optimizer, _ = prepare(fabric, recipe, Path(folder), task, split)
    plan = TrainPlan(len(split.train.labels), recipe.batch_size, recipe.epochs, seed=recipe.seed)
    batch = next(on_device(fabric, make_loader(task.images(split), task.view(), plan), split, recipe))
    meter, progress = Meter(), Progress(recipe, plan.steps_per_epoch, quiet=True)

    def step() -> None:
        losses = train_step(fabric, wrapped, optimizer, batch, recipe, 0.5)
        check_finite(losses, 0, 1)
        model.after_step(0.5)
        meter.add(losses)
        progress.step(1, 0, losses)

    step()
    return step


def main() -> None:
    """Prints the walk."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipe", nargs="?", default="digits/samix", help="a recipe (default: digits/samix)")
    parser.add_argument("--json", action="store_true", help="the numbers alone, as JSON")
    options = parser.parse_args()
    find = find_pretraining if options.recipe.partition("/")[0] in PRETRAININGS else find_recipe
    name, recipe = find(options.recipe)
    walk = follow(one_step(recipe))
    files = {stop.file for stop in walk}
    if options.json:
        print(json.dumps({"recipe": name, "files": len(files), "changes": len(walk)}))
        return
    for stop in walk:
        print(f"{stop.file:<32} {' '.join(dict.fromkeys(stop.functions))}")
    print(f"{name}: {len(files)} files, {len(walk)} changes of file")


if __name__ == "__main__":
    main()
