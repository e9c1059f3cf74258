"""How near PuzzleMix's batched solver comes to the exact minimum, and how much sooner than a graph cut.

python benchmarks/puzzle_gap.py           the table, 200 pairs, batches of 128
python benchmarks/puzzle_gap.py --json    the same as JSON

The gap is (E - E_min) / E_min, with E_min from one exact graph cut per picture (puzzle_cut.py,
needs PyMaxflow), over seeded pictures and saliency maps of 32 px, smooth and noisy, lam uniform. The
speed-up is the processor time per picture of the cut over that of the batched solver, both on one thread and
on the same energies; they take turns, and the ratio is the median over rounds.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch
from puzzle_cut import graph_cut
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from samix.mixups.puzzlemix.energy import Energy, Weights, energy_of, puzzle_energy
from samix.mixups.puzzlemix.solver import solve

SIDE = 32
BLOCKS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    blocks: int
    """Blocks a side."""
    mean_gap: float
    """Mean over pairs of the energy above the minimum, relative to it."""
    largest_gap: float
    """The worst pair."""
    exact: float
    """Part of the pairs whose minimum was found."""
    cut_us: float
    """Microseconds per picture of the graph cut, median over rounds."""
    solver_us: float
    """Microseconds per picture of the batched solver, median over rounds."""
    speedup: float
    """Median over rounds of their ratio."""


def random_fields(count: int, channels: int, draw: torch.Generator) -> Tensor:
    """Noise at three scales, the coarsest strongest, with mean 0 and standard deviation about 1."""
    scales = [(4, 0.8), (8, 0.5), (SIDE, 0.4)]
    noises = [
        (torch.randn(count, channels, cells, cells, generator=draw), weight) for cells, weight in scales
    ]
    return sum(weight * F.interpolate(noise, SIDE, mode="bicubic") for noise, weight in noises)  # type: ignore[return-value]


def random_energy(pairs: int, blocks: int, seed: int) -> Energy:
    """The energy of `pairs` random pictures, each paired with the one before."""
    draw = torch.Generator().manual_seed(seed)
    pixels = (0.5 + 0.25 * random_fields(pairs, 3, draw)).clamp(0, 1)
    saliency = random_fields(pairs, 1, draw)[:, 0].exp()
    lam = torch.rand(pairs, generator=draw)
    return puzzle_energy(pixels, saliency, torch.arange(pairs).roll(1), lam, blocks, Weights())


def gaps(energy: Energy) -> Tensor:
    """Relative energy above the minimum of every pair."""
    energy = Energy(*(part.double() for part in energy))
    lowest = energy_of(energy, graph_cut(energy))
    return (energy_of(energy, solve(energy)) - lowest) / lowest


def seconds(work: Callable[[Energy], Tensor], energy: Energy) -> float:
    """Processor time of one call: what other processes do meanwhile does not count."""
    began = time.process_time()
    work(energy)
    return time.process_time() - began


def measure(blocks: int, pairs: int, batch: int, rounds: int, seed: int) -> Result:
    """Gap over `pairs`, and time over `rounds` of batches of `batch`."""
    gap = gaps(random_energy(pairs, blocks, seed))
    energy = random_energy(batch, blocks, seed + 1)
    seconds(graph_cut, energy), seconds(solve, energy)  # warms both up
    times = [(seconds(graph_cut, energy), seconds(solve, energy)) for _ in range(rounds)]
    cut, solver = (1e6 / batch * statistics.median(column) for column in zip(*times, strict=True))
    return Result(
        blocks=blocks,
        mean_gap=float(gap.mean()),
        largest_gap=float(gap.max()),
        exact=float((gap < 1e-6).double().mean()),
        cut_us=cut,
        solver_us=solver,
        speedup=statistics.median(slow / fast for slow, fast in times),
    )


def as_table(results: Sequence[Result], pairs: int, batch: int) -> Table:
    """The results for a person."""
    table = Table(
        title=f"PuzzleMix: batched solver against one exact graph cut per picture, {pairs} pairs",
        caption=f"{SIDE} px, batch {batch}, one thread",
    )
    for column in ("blocks a side", "mean gap", "largest", "exact", "cut µs", "solver µs", "speed-up"):
        table.add_column(column, justify="right")
    for r in results:
        table.add_row(
            str(r.blocks), f"{r.mean_gap:.3%}", f"{r.largest_gap:.2%}", f"{r.exact:.0%}",
            f"{r.cut_us:.0f}", f"{r.solver_us:.1f}", f"{r.speedup:.0f} x",
        )  # fmt: skip
    return table


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Energy gap and speed of PuzzleMix's batched solver.")
    parser.add_argument("--pairs", type=int, default=200, help="pairs for the gap")
    parser.add_argument("--batch", type=int, default=128, help="pictures per batch for the speed")
    parser.add_argument("--rounds", type=int, default=15, help="times that both solvers take their turn")
    parser.add_argument("--blocks", nargs="+", type=int, choices=BLOCKS, default=list(BLOCKS))
    parser.add_argument("--seed", type=int, default=0, help="of the pictures")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    options = parse(arguments)
    torch.set_num_threads(1)
    results = [
        measure(blocks, options.pairs, options.batch, options.rounds, options.seed)
        for blocks in options.blocks
    ]
    if options.json:
        print(json.dumps({"rows": [asdict(result) for result in results]}, indent=2))
    else:
        Console().print(as_table(results, options.pairs, options.batch))


if __name__ == "__main__":
    main()
