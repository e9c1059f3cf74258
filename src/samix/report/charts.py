"""Lines over epochs and over lam: accuracy and loss, the Mixer's health, what survives of the objects."""

from collections.abc import Sequence
from statistics import mean

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from samix.report.groups import Group
from samix.report.style import FAINT, MARKERS, line_style, make_panels, styled
from samix.runs.samples import read_retention

Curve = dict[float, list[float]]
"""The values of all seeds at each place of the horizontal axis."""


def metric_curve(group: Group, column: str) -> Curve:
    """One column of the metrics over epochs: of the finished seeds, as in the table, else of all."""
    finished = [run for run in group.runs if run.summary is not None]
    return merge_series([run.series(column) for run in finished or group.runs])


def merge_series(series: Sequence[dict[float, float]]) -> Curve:
    """Several series as one curve, only where as many seeds as possible have a value.

    A seed that is still behind would otherwise bend the mean at the place where it stops.
    """
    together: Curve = {}
    for each in series:
        for at, value in each.items():
            together.setdefault(at, []).append(value)
    most = max(map(len, together.values()), default=0)
    return {at: together[at] for at in sorted(together) if len(together[at]) == most}


def draw_curve(axes: Axes, group: Group, values: Curve, **changes: object) -> None:
    """The mean over seeds as a line, their range as a band."""
    if not values:
        return
    options = line_style(group.mixup, group.method) | changes
    at, rows = list(values), list(values.values())
    if len(at) == 1:  # a line of one point would not be seen
        options = {"marker": MARKERS.get(group.mixup, "v")} | options
    axes.plot(at, [mean(row) for row in rows], label=group.method, **options)
    if max(map(len, rows)) > 1:
        low, high = [min(row) for row in rows], [max(row) for row in rows]
        axes.fill_between(at, low, high, color=options["color"], alpha=0.15, linewidth=0)


def add_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend above all panels."""
    named: dict[str, Artist] = {}
    for each in axes:
        for handle, label in zip(*each.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if named:
        figure.legend(list(named.values()), list(named), loc="outside upper left", ncols=6, handlelength=2.2)


def widen_axis(axes: Axes, low: float, high: float) -> None:
    """Widens the vertical axis to [low, high], so that noise does not look like a trend."""
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(bottom, low), max(top, high))


def curves_figure(groups: Sequence[Group]) -> Figure:
    """Test accuracy and training loss over epochs."""
    with styled():
        figure, (accuracy, loss) = make_panels(2)
        for group in groups:
            draw_curve(accuracy, group, metric_curve(group, group.accuracy))
            draw_curve(loss, group, metric_curve(group, "loss"))
        label = "k-NN %" if all(group.accuracy == "knn" for group in groups) else "top-1 %"
        accuracy.set(title="Test accuracy", xlabel="epoch", ylabel=label)
        loss.set(title="Training loss", xlabel="epoch", ylabel="loss of the encoder")
        add_legend(figure, (accuracy, loss))
    return figure


def mixer_figure(groups: Sequence[Group]) -> Figure:
    """Is the Mixer alive: gamma, |mean(mask) - lam|, the mask's deviation, its two losses."""
    with styled():
        figure, (gamma, gap, deviation, losses) = make_panels(4, width=11.2, height=3.0)
        for group in groups:
            draw_curve(gamma, group, metric_curve(group, "gamma"))
            draw_curve(gap, group, metric_curve(group, "gap"))
            draw_curve(deviation, group, metric_curve(group, "deviation"))
            draw_curve(losses, group, metric_curve(group, "local"))
            draw_curve(losses, group, metric_curve(group, "globally"), linewidth=0.9)
        gap.axhline(0.1, color=FAINT, linewidth=1, linestyle=":")
        gamma.set(title="Weight of λ: gamma", xlabel="epoch")
        gap.set(title="Gap: |mean(mask) - λ|", xlabel="epoch")
        deviation.set(title="Deviation within masks", xlabel="epoch")
        losses.set(title="Loss: local thick, global thin", xlabel="epoch")
        for axes, high in ((gamma, 1.0), (gap, 0.2), (deviation, 0.1)):
            widen_axis(axes, -0.03 * high, 1.03 * high)
        add_legend(figure, (gamma, gap, deviation, losses))
    return figure


def retention_curve(group: Group, column: str) -> Curve:
    """Kept share over lam, over the seeds that measured it."""
    tables = [read_retention(run.path) or [] for run in group.runs]
    return merge_series([{row["lam"]: row[column] for row in rows if column in row} for rows in tables])


def retention_figure(groups: Sequence[Group]) -> Figure:
    """Share of object pixels that a mixed image keeps: of both objects, and of the first one."""
    with styled():
        figure, (both, first) = make_panels(2)
        both.axhline(0.5, color=FAINT, linewidth=1, linestyle=":")
        first.axline((0, 0), (1, 1), color=FAINT, linewidth=1, linestyle=":")
        for group in groups:
            marker = {"marker": MARKERS.get(group.mixup, "v"), "markersize": 4}
            draw_curve(both, group, retention_curve(group, "both"), **marker)
            draw_curve(first, group, retention_curve(group, "first"), **marker)
        both.set(title="Kept of both objects (mean)", xlabel="λ", ylabel="share of object pixels")
        first.set(title="Kept of the first object", xlabel="λ", ylabel="share of object pixels")
        for axes, low, high in ((both, 0.4, 0.7), (first, 0.0, 1.0)):
            axes.set(xlim=(-0.03, 1.03))
            widen_axis(axes, low, high)
        add_legend(figure, (both, first))
    return figure
