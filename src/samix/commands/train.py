"""samix train RECIPE|--config FILE [--mixup NAME] [--out FOLDER] [--seeds N...] [--any.field value]"""

from typing import Any

from samix.commands.launch import Command, launch
from samix.engine.training import POLICIES
from samix.recipes import find_recipe

USAGE = """samix train RECIPE [--mixup NAME] [--out FOLDER] [--seeds N ...] [--field value ...]
       samix train --config FILE ...

RECIPE is a family or family/row; `samix recipes` lists them. The same command goes on where a run stopped;
with more --epochs it goes on behind its end.

examples:
  samix train demo/samix
  samix train cifar10-small --mixup cutmix --seeds 0 1 2
  samix train cifar100-r18/samix --data.root data --devices 4 --machine.precision bf16-mixed
  samix train demo/samix --mixup.eta 0.1 --epochs 20 --out runs/eta01"""


def result(summary: dict[str, Any]) -> str:
    """The accuracy in one sentence."""
    last = int(summary.get("median_of", 10))  # runs of before tested the last ten
    over = f"median of the last {last} epochs" if last > 1 else "after the last epoch"
    return f"top-1 {summary['top1']:.2f} % ({over}), best {summary['best']:.2f}"


COMMAND = Command(
    "train",
    USAGE,
    (("mixup", f"how images are mixed: {', '.join(POLICIES)}"),),
    find_recipe,
    "demo",
    result,
)


def run(words: list[str]) -> None:
    """Trains one recipe, for one seed or several."""
    launch(COMMAND, words)
