"""Lines over epochs and over lam: the numbers that they show."""

import io

import numpy as np
import pytest

from samix.report.charts import curves_figure, merge_series, mixer_figure, retention_figure
from samix.report.groups import group_runs
from samix.report.style import write_png
from samix.runs.folder import read_run


def line(axes, label):
    return next(each for each in axes.lines if each.get_label() == label)


@pytest.fixture
def groups(write_run):
    names = ("plain", "cutmix", "samix")
    paths = [write_run(f"demo/{name}", name, seed, top1=50.0 + seed) for name in names for seed in (0, 1)]
    return group_runs(map(read_run, paths))


def test_value_merging_stops_where_a_seed_is_behind():
    behind, ahead = {1.0: 5.0, 2.0: 6.0}, {1.0: 1.0, 2.0: 2.0, 3.0: 3.0}
    assert merge_series([ahead, behind]) == {1: [1, 5], 2: [2, 6]}
    assert merge_series([]) == {}


def test_value_curves_show_the_mean_over_seeds(groups):
    accuracy, loss = curves_figure(groups).axes
    np.testing.assert_allclose(line(accuracy, "samix").get_xydata(), [[2, 52.5], [4, 54.5]])
    np.testing.assert_allclose(line(loss, "plain").get_ydata(), [2, 1, 2 / 3, 1 / 2])
    low, high = accuracy.collections[0].get_datalim(accuracy.transData).intervaly
    assert (low, high) == (52, 55)


def test_value_curves_wait_for_no_unfinished_seed(write_run):
    runs = [read_run(write_run(seed=0, top1=50.0)), read_run(write_run(seed=1, finished=False))]
    runs[1] = runs[1]._replace(rows=runs[1].rows[:1])
    both, alone = curves_figure(group_runs(runs)), curves_figure(group_runs(runs[1:]))
    assert len(line(both.axes[1], "samix").get_xdata()) == 4
    assert len(line(alone.axes[1], "samix").get_xdata()) == 1


def test_value_mixer_shows_gamma_gap_deviation_and_both_losses(groups):
    gamma, gap, deviation, losses = mixer_figure(groups[2:]).axes
    assert line(gamma, "samix").get_ydata()[-1] == 0.5
    assert line(gap, "samix").get_ydata()[-1] == 0.05
    assert line(deviation, "samix").get_ydata()[-1] == 0.2
    assert sorted(each.get_ydata()[0] for each in losses.lines) == [0.7, 2.0]


def test_value_retention_shows_what_was_kept(groups):
    both, first = retention_figure(groups).axes
    np.testing.assert_allclose(line(both, "samix").get_ydata(), [0.5, 0.5, 0.5])
    np.testing.assert_allclose(line(first, "cutmix").get_xydata(), [[0, 0], [0.5, 0.5], [1, 1]])
    assert "plain" not in [each.get_label() for each in both.lines]


def test_invariant_noise_does_not_fill_the_axis(groups):
    low, high = retention_figure(groups).axes[0].get_ylim()
    assert low <= 0.4
    assert high >= 0.7
    assert mixer_figure(groups[2:]).axes[2].get_ylim()[0] <= 0


def test_value_a_dollar_sign_in_a_name_is_no_formula(write_run):
    run = read_run(write_run("demo/samix-$\\frac", folder="odd"))
    write_png(curves_figure(group_runs([run])), io.BytesIO(), dpi=30)


def test_value_a_run_without_rows_draws_empty_panels(write_run):
    run = read_run(write_run())._replace(rows=[])
    figure = curves_figure(group_runs([run]))
    assert not any(axes.lines for axes in figure.axes)
    write_png(figure, io.BytesIO(), dpi=30)


def test_value_a_single_test_is_a_point_that_is_seen(write_run):
    run = read_run(write_run())
    once = run._replace(rows=[*run.rows[:3], run.rows[3]], path=run.path)
    once.rows[1].pop("top1")
    accuracy, loss = curves_figure(group_runs([once])).axes
    assert line(accuracy, "samix").get_marker() == "o"
    assert line(loss, "samix").get_marker() == "None"
