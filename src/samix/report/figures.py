"""Pictures of mixed images: one policy over lam, several policies side by side, what the Mixer looks at."""

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from samix.report.style import FAINT, INK, colour, save_png, styled
from samix.runs.files import own_folder
from samix.runs.folder import read_run
from samix.runs.samples import SAMPLES, Samples, read_samples

HEAT = "viridis"
GAP = 0.08
"""Space between tiles, in tiles."""


class Sheet:
    """A figure of square tiles; places are (column, row) from the top left, in tiles."""

    def __init__(self, columns: float, rows: float, inches: float = 0.82) -> None:
        self.figure = Figure(figsize=(columns * inches, rows * inches), facecolor="white")
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.limits = {"xlim": (0, columns), "ylim": (rows, 0)}
        self.axes.set(**self.limits)

    def show(self, at: tuple[float, float], values: np.ndarray, *, smooth: bool = False, width: float = 1,
             height: float = 1, low: float = 0, high: float = 1) -> None:  # fmt: skip
        """A picture [3, H, W] as it is, or a map [h, w] as a heat map from `low` to `high`."""
        column, row = at
        picture = values.ndim == 3
        self.axes.imshow(
            values.transpose(1, 2, 0) if picture else values,
            extent=(column, column + width, row + height, row),
            cmap=None if picture else HEAT, vmin=low, vmax=high, aspect="auto",
            interpolation="bilinear" if smooth else None,
        )  # fmt: skip
        # imshow moves the limits to the last tile.
        self.axes.set(**self.limits)

    def write(self, at: tuple[float, float], text: str, **options: Any) -> None:
        """Words around a place, centred unless `options` say otherwise."""
        defaults: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": INK}
        self.axes.text(*at, text, **{**defaults, **options})

    def draw_key(self, at: tuple[float, float]) -> None:
        """A key to the colours of a mask."""
        column, row = at
        self.show((column, row), np.linspace(0, 1, 64)[None], width=1.6, height=0.16)
        self.write((column - GAP, row + 0.08), "mask: all partner", ha="right", color=FAINT)
        self.write((column + 1.6 + GAP, row + 0.08), "all first image", ha="left", color=FAINT)


def spread_positions(count: int, most: int) -> list[int]:
    """At most `most` of `count` positions, evenly spread, both ends among them."""
    if most == 1 and count:
        return [count // 2]
    return sorted({round(k) for k in np.linspace(0, count - 1, min(count, most))})


def inner_positions(lams: np.ndarray, most: int) -> list[int]:
    """At most `most` positions of `lams`, without 0 and 1 where nothing is mixed."""
    mixing = [k for k, lam in enumerate(lams) if 0 < lam < 1] or list(range(len(lams)))
    return [mixing[k] for k in spread_positions(len(mixing), most)]


def sample_figure(samples: Samples, title: str, pairs: int = 5, most: int = 11) -> Figure:
    """One policy: each pair of pictures, then the mixed images over lam with their masks below.

    Without any lam (plain training) it shows the pictures alone.
    """
    chosen, pairs = spread_positions(len(samples.lams), most), min(pairs, len(samples.first))
    step, start, top = 1 + GAP, 2.5, 1.0
    height = (2 if chosen else 1) * step + 2 * GAP
    with styled():
        sheet = Sheet(max(start + len(chosen) * step + GAP, 5.0), top + pairs * height + 0.45)
        sheet.write((GAP, 0.3), title, ha="left", fontsize=11, weight="bold")
        for column, word in enumerate(("first", "partner")):
            sheet.write((GAP + column * step + 0.5, top - 0.16), word)
        for column, k in enumerate(chosen):
            sheet.write(
                (start + column * step + 0.5, top - 0.34), f"λ = {samples.lams[k]:.2g}", weight="bold"
            )
            mean = samples.masks[k, :pairs].mean()
            sheet.write(
                (start + column * step + 0.5, top - 0.13), f"mean {mean:.2f}", fontsize=7, color=FAINT
            )
        for pair in range(pairs):
            row = top + pair * height
            sheet.show((GAP, row), samples.first[pair])
            sheet.show((GAP + step, row), samples.partner[pair])
            if chosen:
                sheet.write((start - 2 * GAP, row + step + 0.5), "mask", ha="right", color=FAINT)
            for column, k in enumerate(chosen):
                sheet.show((start + column * step, row), samples.mixed[k, pair])
                sheet.show((start + column * step, row + step), samples.masks[k, pair, 0])
        if chosen:
            sheet.draw_key((1.7, top + pairs * height + 0.1))
    return sheet.figure


def pair_figure(samples: Samples, title: str, inches: float = 1.5) -> Figure:
    """One policy on one pair of photographs, in large tiles: the two, then mixed images over their masks."""
    step, start, top = 1 + GAP / 2, 1.85, 0.5
    with styled():
        sheet = Sheet(start + len(samples.lams) * step + GAP, top + 2 * step + 0.35, inches)
        sheet.write((0.45, 0.17), title, ha="left", fontsize=11, weight="bold")
        for row, (word, picture) in enumerate((("first", samples.first), ("partner", samples.partner))):
            sheet.show((0.45, top + row * step), picture[0])
            sheet.write((0.45 - GAP / 2, top + row * step + 0.5), word, ha="right", fontsize=9)
        sheet.write((start - GAP / 2, top + step + 0.5), "mask", ha="right", color=FAINT)
        for k, lam in enumerate(samples.lams):
            left = start + k * step
            sheet.write((left + 0.5, top - 0.09), f"λ = {lam:.2g}", fontsize=9, weight="bold")
            sheet.show((left, top), samples.mixed[k, 0])
            sheet.show((left, top + step), samples.masks[k, 0, 0])
        sheet.draw_key((start + 1, top + 2 * step + 0.06))
    return sheet.figure


def same_pairs(samples: Samples, other: Samples) -> bool:
    """Whether two runs mixed the same pictures at the same lams."""
    fields = ((samples.first, other.first), (samples.partner, other.partner), (samples.lams, other.lams))
    return all(np.array_equal(one, two) for one, two in fields)


def comparison_figure(
    samples: dict[str, Samples], mixups: dict[str, str], pairs: int = 3, most: int = 5, inches: float = 0.66
) -> Figure:
    """Several methods (rows) on the same pairs: mixed images over lam, and their masks beside them.

    `samples` by the method's label, `mixups` the policy behind each label, `inches` the side of a tile.
    """
    one = next(iter(samples.values()))
    different = [label for label, each in samples.items() if not same_pairs(one, each)]
    if different:
        raise ValueError(f"only runs that mixed the same pairs can be compared; {different[0]} differs.")
    chosen, pairs = inner_positions(one.lams, most), min(pairs, len(one.first))
    step, start, top = 1 + GAP, 3.0, 0.55
    beside = start + len(chosen) * step + 3 * GAP
    height = max(len(samples), 2) * step + 0.3
    with styled():
        sheet = Sheet(beside + len(chosen) * step + GAP, top + pairs * height + 0.3, inches)
        for column, k in enumerate(chosen):
            for left in (start, beside):
                sheet.write((left + column * step + 0.5, top - 0.2), f"λ = {one.lams[k]:.2g}", weight="bold")
        for pair in range(pairs):
            row = top + pair * height
            for k, (word, picture) in enumerate((("first", one.first), ("partner", one.partner))):
                sheet.show((0.85, row + k * step), picture[pair])
                sheet.write((0.77, row + k * step + 0.5), word, ha="right", color=FAINT)
            for k, (label, each) in enumerate(samples.items()):
                down, name = row + k * step, textwrap.fill(label, 12)
                sheet.write((start - 2 * GAP, down + 0.5), name, ha="right", color=colour(mixups[label]))
                for column, lam in enumerate(chosen):
                    sheet.show((start + column * step, down), each.mixed[lam, pair])
                    sheet.show((beside + column * step, down), each.masks[lam, pair, 0])
        sheet.draw_key((2.0, top + pairs * height))
    return sheet.figure


def attention_figure(samples: Samples, title: str, most: int = 8) -> Figure:
    """What the Mixer attends to at lam 0.5: picture, content map, attention map, one column per picture."""
    if samples.content is None or samples.attention is None:
        raise ValueError("only learned policies have content and attention maps; this run has none.")
    chosen = range(min(most, len(samples.first)))
    step, start, top, height = 1 + GAP, 1.15, 0.7, 1.28
    with styled():
        sheet = Sheet(start + len(chosen) * step + GAP, top + step + 2 * height)
        sheet.write((GAP, 0.3), title, ha="left", fontsize=11, weight="bold")
        sheet.write((start - 2 * GAP, top + 0.5), "picture", ha="right")
        for column in chosen:
            sheet.show((start + column * step, top), samples.first[column])
        for k, (word, maps) in enumerate((("content", samples.content), ("attention", samples.attention))):
            row = top + step + k * height
            sheet.write((start - 2 * GAP, row + 0.5), word, ha="right")
            for column in chosen:
                values = maps[column].astype(np.float64)
                low, high = float(values.min()), float(values.max())
                at = (start + column * step, row)
                # A constant map has no range of its own; any range shows it as one flat colour.
                sheet.show(at, values, smooth=True, low=low, high=high if high > low else low + 1)
                sheet.write((at[0] + 0.5, row + 1.1), f"{low:.3g} – {high:.3g}", fontsize=6.5, color=FAINT)
    return sheet.figure


def draw_samples(run: Path) -> Path:
    """Draws the mixed images of a run folder into its samples/mixed.png."""
    run = Path(run)
    samples = read_samples(run)
    if samples is None:
        raise FileNotFoundError(f"{run} has no {SAMPLES}: it has not drawn mixed pictures yet.")
    return save_png(sample_figure(samples, read_run(run).recipe), own_folder(run, "samples") / "mixed.png")


__all__ = [
    "attention_figure",
    "comparison_figure",
    "draw_samples",
    "pair_figure",
    "sample_figure",
    "save_png",
]
