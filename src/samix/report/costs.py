"""What accuracy costs: against training time and against memory, a point per method with its deviations."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from samix.core.comparing import Value, spread
from samix.report.groups import Group
from samix.report.labels import Box, place_labels
from samix.report.standing import scores_by_seed
from samix.report.style import FAINT, MARKERS, colour, make_panels, styled

WIDE = 20.0
"""From this ratio of the dearest to the cheapest on, costs are drawn on a logarithmic axis."""


class Point(NamedTuple):
    """A method in one panel."""

    group: Group
    cost: Value
    accuracy: Value


def points_of(groups: Sequence[Group], name: str) -> list[Point]:
    """The methods whose finished runs tell their accuracy and this cost."""
    points = []
    for group in groups:
        costs = [
            float(run.summary[name])
            for run in group.runs
            if run.summary and run.summary.get(name) is not None
        ]
        scores = list(scores_by_seed(group).values())
        if costs and scores:
            points.append(Point(group, spread(costs), spread(scores)))
    return points


def cost_figure(groups: Sequence[Group]) -> Figure | None:
    """Two panels, or None where fewer than two methods can be compared."""
    panels = [
        (points_of(groups, "seconds"), "Accuracy and training time", "seconds of training"),
        (points_of(groups, "peak_mb"), "Accuracy and memory", "most memory, MB"),
    ]
    if all(len(points) < 2 for points, *_ in panels):
        return None
    label = "k-NN %" if all(group.accuracy == "knn" for group in groups) else "top-1 %"
    with styled():
        figure, axes = make_panels(2, height=3.9)
        for each, (points, title, cost) in zip(axes, panels, strict=True):
            draw_points(each, points)
            each.set(title=title, xlabel=cost, ylabel=label)
        figure.draw_without_rendering()  # now every axis has its place and range
        figure.set_layout_engine("none")
        for each, (points, *_) in zip(axes, panels, strict=True):
            name_points(figure, each, points)
    return figure


def draw_points(axes: Axes, points: Sequence[Point]) -> None:
    """Means with bars of one deviation each way."""
    for group, cost, accuracy in points:
        axes.errorbar(
            cost.mean, accuracy.mean, xerr=cost.std, yerr=accuracy.std, color=colour(group.mixup),
            marker=MARKERS.get(group.mixup, "v"), markersize=6, elinewidth=1, alpha=0.9,
        )  # fmt: skip
    axes.margins(x=0.18, y=0.12)
    means = [point.cost.mean for point in points if point.cost.mean > 0]
    if means and len(means) == len(points) and max(means) / min(means) >= WIDE:
        axes.set_xscale("log")


def name_points(figure: Figure, axes: Axes, points: Sequence[Point]) -> None:
    """Names beside the points, with a fine line where one had to move away."""
    texts = [
        axes.annotate(
            group.method, (cost.mean, accuracy.mean), xytext=(0, 0), textcoords="offset pixels",
            fontsize=8, color=colour(group.mixup), va="bottom", ha="left", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )
        for group, cost, accuracy in points
    ]  # fmt: skip
    places = [pixels(axes, cost.mean, accuracy.mean) for _, cost, accuracy in points]
    extents = [text.get_window_extent() for text in texts]
    usual = median(extent.height for extent in extents) if extents else 0
    sizes = [(float(extent.width), float(extent.height)) for extent in extents]
    frame = axes.get_window_extent()
    inside = Box(*map(float, frame.bounds))
    boxes = place_labels(places, sizes, inside, bars_of(axes, points))
    for text, (x, y), box in zip(texts, places, boxes, strict=True):
        scale = 72 / figure.dpi  # points stay in place when the figure is drawn in another resolution
        text.anncoords = "offset points"
        text.set_position(((box.left - x) * scale, (box.bottom - y) * scale))
        near = abs(box.bottom + box.height / 2 - y) <= 1.5 * usual
        if near and text.arrow_patch is not None:
            text.arrow_patch.set_visible(False)


def pixels(axes: Axes, cost: float, accuracy: float) -> tuple[float, float]:
    """Where a place of the axes is in the figure."""
    x, y = axes.transData.transform((cost, accuracy))
    return float(x), float(y)


def bars_of(axes: Axes, points: Sequence[Point]) -> list[Box]:
    """The bars of deviation as boxes at least a pixel wide."""
    boxes = []
    for _, cost, accuracy in points:
        for across, along in ((cost.std or 0.0, 0.0), (0.0, accuracy.std or 0.0)):
            # On a logarithmic axis a bar may reach below 0, where nothing is drawn.
            low = cost.mean - across if cost.mean > across else cost.mean / 100
            left, bottom = pixels(axes, low, accuracy.mean - along)
            right, top = pixels(axes, cost.mean + across, accuracy.mean + along)
            boxes.append(Box(left, bottom, max(right - left, 1.0), max(top - bottom, 1.0)))
    return boxes
