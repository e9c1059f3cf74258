"""One look for all figures: quiet axes, and for each method one colour that colour-blind eyes tell apart."""

import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from samix.runs.files import write_atomically

# The palette of Okabe and Ito, without its yellow, which vanishes on white.
COLOURS = {
    "plain": "#5c5c5c",
    "mixup": "#0072b2",
    "cutmix": "#e69f00",
    "automix": "#009e73",
    "adautomix": "#332288",
    "samix": "#d55e00",
    "samix-i": "#d55e00",
    "samix-c": "#8b2e7f",
}
SPARE = ("#cc79a7", "#56b4e9", "#8c6bb1", "#7f5539", "#000000")
MARKERS = {"plain": "o", "mixup": "s", "cutmix": "^", "automix": "D", "adautomix": "D", "samix": "o"}
INK, FAINT = "#222222", "#8a8a8a"

RC: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    # Names come from files, and a dollar sign in one must not start a formula.
    "text.parse_math": False,
}


def colour(mixup: str) -> str:
    """The colour of a policy, the same in every figure of every report."""
    return COLOURS.get(mixup) or SPARE[zlib.crc32(mixup.encode()) % len(SPARE)]


def line_style(mixup: str, method: str) -> dict[str, Any]:
    """How a line is drawn: variants of a policy share its colour and differ in their dashes."""
    dashes = "-" if method == mixup or mixup == "plain" else "--" if method == f"{mixup} + clean" else ":"
    # The method that the report is about lies on top.
    return {"color": colour(mixup), "linestyle": dashes, "zorder": 4 if mixup.startswith("samix") else 3}


def make_panels(count: int, width: float = 9.6, height: float = 3.4) -> tuple[Figure, Sequence[Axes]]:
    """A figure with `count` panels side by side, in the style of the report (call inside `styled`)."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def styled() -> AbstractContextManager[None]:
    """A context in which figures take the report's style; nothing global changes."""
    return matplotlib.rc_context(RC)


def save_png(figure: Figure, path: Path, dpi: int = 170) -> Path:
    """Writes the figure as PNG, atomically."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda temporary: write_png(figure, temporary, dpi))
    return path


def write_png(figure: Figure, target: Any, dpi: int = 170) -> None:
    """The figure as PNG into a path or an open binary file."""
    figure.savefig(target, format="png", dpi=dpi, metadata={"Software": None})
