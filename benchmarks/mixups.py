"""How long each policy takes to mix a batch, side by side with other libraries.

python benchmarks/mixups.py                              the table of docs/speed.md
python benchmarks/mixups.py --sizes 32 --rows mixup      one row, one size
python benchmarks/mixups.py --json                       the same as JSON

Every row makes mixed images and soft labels out of the same float batch. Policies that need saliency,
attention or maps get them ready-made: what they cost in training is in `steptime.py`. Latent policies mix the
batch as if it were a layer's map. Peers (timm, torchvision, kornia) run where they are installed, ours as
`samix.Mix` there. Ours and each peer take turns; `ratio` is the median over rounds of ours to the peer's time
in the same round. Time is that of the process, not of the clock on the wall, so that other work on the
machine counts little. timm writes into its input; `timm-clone` gives it a copy, as a loop must that still
needs the clean batch.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from timing import Step, interleave
from torch import Tensor
from torch.nn import functional as F

import samix  # prepares torchvision
from samix.engine.memory import keep_freed_memory
from samix.mixups import MIXUPS, Hints

CLASSES = 100
PEERS_HAVE = {"mixup": (1.0, 0.0), "cutmix": (0.0, 1.0), "mixup+cutmix": (0.8, 1.0)}
"""Rows that other libraries know, with alpha of Mixup and of CutMix."""
BATCHES = {32: 128, 224: 64}
SLOW = ("supermix", "comixup", "alignmix")
"""Rows that are left out at 224 px unless asked for: minutes a batch on a CPU."""


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    row: str
    size: int
    batch: int
    seconds: float
    peer: str
    """The library compared with, or nothing."""
    peer_seconds: float | None
    ratio: float | None
    """Ours to the peer's."""


def hints_of(x: Tensor) -> Hints:
    """Ready-made hints of the right shapes."""
    generator = torch.Generator().manual_seed(1)
    saliency = F.interpolate(torch.rand(len(x), 1, 8, 8, generator=generator), x.shape[-2:], mode="bilinear")[
        :, 0
    ]
    cells = torch.rand(len(x), 8, 8, generator=generator)

    def teacher(images: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(images, 4).flatten(1) * 10

    attention = cells / cells.sum(dim=(1, 2), keepdim=True)
    return Hints(x, saliency, attention, cells[:, None], teacher, activation=cells)


def ours(name: str, x: Tensor, y: Tensor) -> Step:
    """A policy of ours, from the draw to the soft labels; by `Mix` where peers have the same call."""
    if name in PEERS_HAVE:
        mix = samix.Mix(name, CLASSES)
        return lambda: mix(x, y)
    policy, hints = MIXUPS[name](), hints_of(x)

    def step() -> Any:
        mixed = policy.picture(x, policy.draw(len(x)), hints)
        return mixed.x, mixed.soft_labels(y, CLASSES)

    return step


def peers(name: str, x: Tensor, y: Tensor) -> Iterator[tuple[str, Step]]:
    """The same work in other libraries, where they are installed and know the policy."""
    if name not in PEERS_HAVE:
        return
    alphas = PEERS_HAVE[name]
    from timm.data import Mixup

    theirs = Mixup(mixup_alpha=alphas[0], cutmix_alpha=alphas[1], num_classes=CLASSES, label_smoothing=0.0)
    scratch = x.clone()
    yield "timm", lambda: theirs(scratch, y)
    yield "timm-clone", lambda: theirs(x.clone(), y)
    if name == "mixup+cutmix":
        return
    from torchvision.transforms import v2

    transform = {"mixup": v2.MixUp, "cutmix": v2.CutMix}[name](alpha=1.0, num_classes=CLASSES)
    yield "torchvision", lambda: transform(x, y)
    try:
        from kornia.augmentation import RandomCutMixV2, RandomMixUpV2
    except ImportError:
        return
    kind = {"mixup": RandomMixUpV2, "cutmix": RandomCutMixV2}[name](p=1.0, data_keys=["input", "class"])
    yield "kornia", lambda: kind(x, y)


def benchmark(rows: Sequence[str], size: int, batch: int, rounds: int) -> Iterator[Result]:
    """Each policy with its peers."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(batch, 3, size, size, generator=generator), torch.arange(batch) % CLASSES
    for name in rows:
        mine, others = ours(name, x, y), dict(peers(name, x, y))
        if not others:
            alone = timed({"samix": mine}, rounds)["samix"]
            yield Result(name, size, batch, statistics.median(alone), "", None, None)
        for peer, theirs in others.items():
            times = timed({"samix": mine, peer: theirs}, rounds)
            ratio = statistics.median(a / b for a, b in zip(times["samix"], times[peer], strict=True))
            medians = [statistics.median(each) for each in times.values()]
            yield Result(name, size, batch, medians[0], peer, medians[1], ratio)


def timed(steps: dict[str, Step], rounds: int) -> dict[str, list[float]]:
    """Seconds of the process per round, after one round to warm up.

    Two at most, in turns, so that each finds the caches as the other left them.
    """
    interleave(steps, 1)
    return interleave(steps, rounds, time.process_time)


def as_table(results: Sequence[Result], rounds: int) -> Table:
    """The results for a person."""
    table = Table(title=f"Mixing one batch, {torch.get_num_threads()} thread(s), median of {rounds} rounds")
    for column in ("row", "batch", "CPU ms", "peer", "peer's ms", "ours / peer"):
        table.add_column(column, justify="left" if column in ("row", "peer") else "right")
    for r in results:
        theirs = ("", "") if r.ratio is None else (f"{1000 * (r.peer_seconds or 0):.2f}", f"{r.ratio:.2f}")
        table.add_row(r.row, f"{r.batch} x {r.size} px", f"{1000 * r.seconds:.2f}", r.peer, *theirs)
    return table


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Time to mix one batch, beside other libraries.")
    parser.add_argument(
        "--rows", nargs="+", choices=MIXUPS, help="policies (default: all that are quick enough)"
    )
    parser.add_argument("--sizes", nargs="+", type=int, choices=BATCHES, default=list(BATCHES), help="pixels")
    parser.add_argument("--rounds", type=int, default=15, help="times that every row takes its turn")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    results: list[Result] = []
    for size in options.sizes:
        rows = options.rows or [name for name in MIXUPS if size < 100 or name not in SLOW]
        results += benchmark(rows, size, BATCHES[size], options.rounds)
    if options.json:
        print(json.dumps({"rows": [asdict(result) for result in results]}, indent=2))
    else:
        Console().print(as_table(results, options.rounds))


if __name__ == "__main__":
    main()
