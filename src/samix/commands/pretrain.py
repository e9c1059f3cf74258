"""samix pretrain RECIPE|--config FILE [--method NAME] [--mixup NAME] [--out FOLDER] [--any.field value]"""

from typing import Any

from samix.commands.launch import Command, launch
from samix.engine.pretraining import METHODS, VIEW_POLICIES
from samix.recipes import PRESETS, find_pretraining

USAGE = """samix pretrain RECIPE [--method NAME] [--mixup NAME] [--out FOLDER] [--seeds N ...] [--field value]
       samix pretrain --config FILE ...

RECIPE is a family or family/METHOD+MIXUP; `samix recipes` lists them.

examples:
  samix pretrain ssl-demo
  samix pretrain ssl-small --method byol --mixup cutmix
  samix pretrain ssl-small/moco-v2+samix-c --seeds 0 1 2
  samix pretrain ssl-folder --data.root my/pictures --mixup samix-i --out runs/mine

afterwards:
  samix knn RUN     samix linear RUN     (a run without labels: --data.name folder --data.root LABELLED)"""


def result(summary: dict[str, Any]) -> str:
    """The tests of the encoder in one sentence."""
    tests = {"knn": "k-NN", "linear": "linear probe", "nmi": "NMI of the clusters"}
    scale = {"nmi": 100.0}
    found = [
        f"{label} {summary[name] * scale.get(name, 1.0):.2f} %"
        for name, label in tests.items()
        if name in summary
    ]
    return ", ".join(found) or "trained without labels to test by"


COMMAND = Command(
    "pretrain",
    USAGE,
    (
        ("method", f"what is learned: {', '.join(METHODS)}"),
        ("mixup", f"how views are mixed: {', '.join([*VIEW_POLICIES, *PRESETS])}"),
    ),
    find_pretraining,
    "ssl-demo",
    result,
)


def run(words: list[str]) -> None:
    """Pre-trains one recipe, for one seed or several."""
    launch(COMMAND, words)
