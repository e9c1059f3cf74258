"""How long a training step takes, every row as a ratio to plain classification.

python benchmarks/steptime.py                        the table of docs/speed.md, 1 and 2 threads
python benchmarks/steptime.py --rows samix --json    one row beside plain, as JSON
python benchmarks/steptime.py --rows mixups          every hand-made policy beside plain
python benchmarks/steptime.py --rows ssl             pre-training: MoCo v2 as 1, and mixups inside it
python benchmarks/steptime.py --rows samix-online-maps   mixup.speed.online_maps
python benchmarks/steptime.py --rows samix-p         a frozen Mixer (SAMix-P)
python benchmarks/steptime.py --rows r50 --batch 8   ResNet-50 at 224 px: plain, SAMix, SAMix-P
python benchmarks/steptime.py --rows lite0 --batch 36   all rows of flowers-lite0 while they mix

A step is forward, backward, optimizer step and momentum update of the cifar100-r18 recipes (ResNet-18
with CIFAR stem, 32 px, 100 classes, float32, channels-last) on one random batch. The rows take turns, and
a row's ratio is the median over rounds of its time to plain's time in the same round, so a machine that
is busy for a while slows both sides of the ratio. SAMix-P mixes with the shipped
Mixer `tiny`, which looks at pictures of any size in 128 px. Floating-point operations are counted beside it:
that ratio is the same on every machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from timing import interleave
from torch.utils.flop_counter import FlopCounterMode

from samix.data.datasets import CIFAR_STATS, Data
from samix.engine.memory import keep_freed_memory
from samix.engine.optim import build_optimizer
from samix.engine.pretrained import PretrainedMixup
from samix.engine.pretraining import Pretraining
from samix.engine.recipe import Recipe
from samix.engine.training import Training
from samix.learned import AdAutoMixed, Speed
from samix.learned.samix_c import ClusterMixup
from samix.learned.samix_i import InstanceMixup
from samix.methods.ssl.moco import MoCoV2
from samix.mixups import MIXUPS
from samix.nn.zoo import Network
from samix.recipes import CIFAR100_R18, FLOWERS_LITE0, RECIPES
from samix.recipes.base import speedy
from samix.runs.provenance import peak_memory_mb

CLASSES = 100
PLAIN, SAMIX = CIFAR100_R18.rows["plain"], CIFAR100_R18.rows["samix"]
VIT = replace(PLAIN, encoder=Network(name="small-vit"))
ATTENTIVE = ("transmix", "tokenmix", "smmix")
"""Policies that need attention: they run on a small ViT, beside plain training of the same."""

PICTURES = 5000
"""Training pictures that SAMix-C keeps in its memory."""
MOCO = Pretraining(
    data=Data(name="cifar10"), encoder=Network(name="resnet18-cifar"), method=MoCoV2(queue=4096)
)
SSL: dict[str, Recipe] = {
    "moco-v2": MOCO,
    "moco-v2+mixup": replace(MOCO, mixup=MIXUPS["mixup"]()),
    "moco-v2+samix-i": replace(MOCO, mixup=InstanceMixup()),
    "moco-v2+samix-i-fast": replace(MOCO, mixup=InstanceMixup(speed=Speed(fraction=0.25))),
    "moco-v2+samix-c": replace(MOCO, mixup=ClusterMixup()),
}


IMAGENET_R50 = RECIPES["imagenet-r50"]
LARGE = IMAGENET_R50.rows["plain"]
R50: dict[str, Recipe] = {
    "plain-r50": LARGE,
    "samix-r50": IMAGENET_R50.rows["samix"],
    "samix-p-r50": replace(LARGE, mixup=PretrainedMixup(mixer="tiny")),
}
LITE0: dict[str, Recipe] = {f"{name}-lite0": recipe for name, recipe in FLOWERS_LITE0.rows.items()}
ROWS: dict[str, Recipe] = {
    "plain": PLAIN,
    "plain-vit": VIT,
    **{name: replace(VIT if name in ATTENTIVE else PLAIN, mixup=policy()) for name, policy in MIXUPS.items()},
    "automix": CIFAR100_R18.rows["automix"],
    "adautomix": replace(CIFAR100_R18.rows["automix"], mixup=AdAutoMixed()),
    "samix": SAMIX,
    "samix-online-maps": replace(SAMIX, mixup=replace(SAMIX.mixup, speed=Speed(online_maps=True))),
    "samix-fast": CIFAR100_R18.rows["samix-fast"],
    "samix-fast-one-head": speedy(replace(SAMIX, objective=replace(SAMIX.objective, clean_head=False))),
    "samix-p": replace(PLAIN, mixup=PretrainedMixup(mixer="tiny")),
    **R50,
    **LITE0,
    **SSL,
}


USUAL = ("plain", "mixup", "cutmix", "automix", "samix", "samix-fast")
SLOW = ("supermix",)
"""Left out of `--rows mixups`: it optimises each batch for up to 50 passes."""


def baseline(row: str) -> str:
    """The row that another one is compared with."""
    if row in SSL:
        return "moco-v2"
    if row in R50:
        return "plain-r50"
    if row in LITE0:
        return "plain-lite0"
    return "plain-vit" if row in ATTENTIVE or row == "plain-vit" else "plain"


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    row: str
    threads: int
    seconds: float
    """Median over rounds."""
    ratio: float
    """Median over rounds of the time relative to plain (of the same network) in the same round."""
    flops_ratio: float
    """Floating-point operations of convolutions and matrix products relative to plain's."""
    peak_mb: float
    """Largest memory of a process that runs only this row."""


def build(recipe: Recipe) -> Any:
    """The model of a row, ready for its first step."""
    if isinstance(recipe, Training):
        return recipe.build(CLASSES, CIFAR_STATS)
    assert isinstance(recipe, Pretraining)
    model: Any = recipe.build(PICTURES)
    if hasattr(model, "pseudo"):
        features = torch.randn_like(model.pseudo.memory.features)
        model.pseudo.begin(features, torch.zeros(PICTURES, dtype=torch.long), 0)
    return model


def make_step(recipe: Recipe, batch: int) -> Callable[[], None]:
    """One training step on a fixed random batch, as the engine's loop runs it."""
    torch.manual_seed(0)
    model = build(recipe).to(memory_format=torch.channels_last)
    optimizer = build_optimizer(model.train().parameter_groups(), recipe.optimizer)
    size, views = recipe.data.size, 2 if isinstance(recipe, Pretraining) else 1
    x = torch.randn(views * batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    y = torch.randint(CLASSES, (batch,)) if views == 1 else torch.randperm(PICTURES)[:batch]

    def step() -> None:
        model(x, y, 0.5).total.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        model.after_step(0.5)

    return step


def count_flops(step: Callable[[], None]) -> int:
    """Floating-point operations of one step."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


def peak_of(row: str, batch: int, threads: int) -> float:
    """Peak memory in MB of two steps in a process of their own."""
    command = [sys.executable, __file__, "--peak", row, "--batch", str(batch), "--threads", str(threads)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run_alone(row: str, batch: int, threads: int) -> float:
    """The other side of `peak_of`: two steps, because the first allocates the optimizer's state."""
    torch.set_num_threads(threads)
    step = make_step(ROWS[row], batch)
    step()
    step()
    return peak_memory_mb()


def benchmark(rows: Sequence[str], threads: Sequence[int], rounds: int, batch: int) -> list[Result]:
    """Memory and time of the rows, plain among them, for each number of threads."""
    names = list(dict.fromkeys(name for row in rows for name in (baseline(row), row)))
    # Linux counts the parent's memory at the fork in a child's peak: measure before any model is built here.
    peaks = {(name, count): peak_of(name, batch, count) for count in threads for name in names}
    results = []
    for count in threads:
        torch.set_num_threads(count)
        steps = {name: make_step(ROWS[name], batch) for name in names}
        flops = {name: count_flops(step) for name, step in steps.items()}  # warms the steps up as well
        times = interleave(steps, rounds)
        for name in names:
            plain = baseline(name)
            ratios = [mine / theirs for mine, theirs in zip(times[name], times[plain], strict=True)]
            results.append(
                Result(
                    row=name,
                    threads=count,
                    seconds=statistics.median(times[name]),
                    ratio=statistics.median(ratios),
                    flops_ratio=flops[name] / flops[plain],
                    peak_mb=peaks[name, count],
                )
            )
    return results


def as_table(results: Sequence[Result], rounds: int, batch: int) -> Table:
    """The results for a person."""
    table = Table(
        title=f"Training step, batch {batch}, median of {rounds} rounds",
        caption="ResNet-18 with CIFAR stem, 32 px (r50: ResNet-50, 224 px; lite0: 96 px), float32; ratios "
        "are to plain, in pre-training to MoCo v2",
    )
    table.add_column("row")
    for column in ("threads", "seconds", "ratio", "FLOPs ratio", "peak MB"):
        table.add_column(column, justify="right")
    for r in results:
        table.add_row(
            r.row, str(r.threads), f"{r.seconds:.3f}", f"{r.ratio:.3f}", f"{r.flops_ratio:.3f}",
            f"{r.peak_mb:,.0f}",
        )  # fmt: skip
    return table


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Time of a training step, as a ratio to plain training.")
    parser.add_argument(
        "--rows", nargs="+", choices=[*ROWS, "mixups", "ssl", "r50", "lite0"], default=list(USUAL),
        metavar="ROW",
        help=f"rows to measure, of {', '.join(ROWS)}; mixups: every hand-made policy, ssl: pre-training, "
        "r50: ResNet-50 at 224 px, lite0: few photographs",
    )  # fmt: skip
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="numbers of CPU threads")
    parser.add_argument("--rounds", type=int, default=20, help="times that every row takes its turn")
    parser.add_argument("--batch", type=int, default=64, help="images per step")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--peak", choices=ROWS, help="print one row's peak memory in MB and end")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    options = parse(arguments)
    keep_freed_memory()  # as the engine does
    if options.peak:
        print(run_alone(options.peak, options.batch, options.threads[0]))
        return
    hand_made = [name for name in MIXUPS if name not in SLOW]
    several = {"mixups": hand_made, "ssl": list(SSL), "r50": list(R50), "lite0": list(LITE0)}
    rows = [name for row in options.rows for name in several.get(row, [row])]
    results = benchmark(rows, options.threads, options.rounds, options.batch)
    if options.json:
        print(json.dumps({"rows": [asdict(result) for result in results]}, indent=2))
    else:
        Console().print(as_table(results, options.rounds, options.batch))


if __name__ == "__main__":
    main()
