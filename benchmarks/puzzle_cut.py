"""The global minimum of PuzzleMix's energy by one graph cut per picture: the reference for `puzzle_solver`.

Write s = (a + c) / 2 with bits a >= c. For neighbours with coupling w,

    w (s - s')^2 = w/4 (|a - a'| + |c - c'|) + w/2 (c (1 - a') + c' (1 - a)),

which is submodular, so one minimum cut over two nodes per block is exact (Ishikawa's construction). The
official code takes alpha-beta swaps, several cuts per picture that end in a minimum with respect to swaps;
alpha-expansion does not apply, because (s - s')^2 breaks the triangle inequality.
"""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from samix.mixups.puzzlemix.energy import Energy, PerBlock

NEVER = 1e3
"""The price of c > a, far above any energy."""


def graph_cut(energy: Energy) -> PerBlock:
    """Shares of the lowest energy, picture by picture, on the CPU. Needs PyMaxflow."""
    unary, down, right = (part.double().cpu().numpy() for part in energy)
    cuts = [cut(unary[:, i], down[i], right[i]) for i in range(unary.shape[1])]
    return torch.as_tensor(np.stack(cuts)).to(energy.unary)


def cut(unary: NDArray, down: NDArray, right: NDArray) -> NDArray:
    """The best shares of one picture from unary [3, n, m] and its couplings."""
    maxflow = load_maxflow()
    _, rows, columns = unary.shape
    quarter = np.concatenate([down.ravel(), right.ravel()]) / 4
    never, nothing = np.full(rows * columns, NEVER), np.zeros(2 * len(quarter) + rows * columns)
    tails, heads = edges(rows, columns)

    graph = maxflow.GraphFloat(2 * rows * columns, len(tails))
    nodes = graph.add_grid_nodes(2 * rows * columns)
    rise = np.diff(unary, axis=0).ravel()  # what setting a, then c, adds
    graph.add_grid_tedges(nodes, np.maximum(-rise, 0), np.maximum(rise, 0))
    forward = np.concatenate([quarter, quarter, 2 * quarter, 2 * quarter, never])
    graph.add_edges(tails, heads, forward, np.concatenate([quarter, quarter, nothing]))
    graph.maxflow()
    bits = ~graph.get_grid_segments(nodes)  # True on the source's side
    return bits.reshape(2, rows, columns).sum(axis=0) / 2


@lru_cache
def edges(rows: int, columns: int) -> tuple[NDArray, NDArray]:
    """Tails and heads: a to a', c to c', c to a', c' to a, c to a; cut where the tail alone is set."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    first = np.concatenate([grid[:-1].ravel(), grid[:, :-1].ravel()])
    second = np.concatenate([grid[1:].ravel(), grid[:, 1:].ravel()])
    a, c = grid.ravel(), grid.size  # bit c of a block comes c nodes after its bit a
    tails = np.concatenate([first, first + c, first + c, second + c, a + c])
    return tails, np.concatenate([second, second + c, second, first, a])


def load_maxflow():  # type: ignore[no-untyped-def]
    """The library, or an error that says how to get it."""
    try:
        import maxflow
    except ImportError as error:
        raise ImportError("the exact graph cut needs PyMaxflow: pip install PyMaxflow") from error
    return maxflow
