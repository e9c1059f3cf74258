"""Differences to plain training and to the paper, and what accuracy costs."""

import json

import numpy as np
import pytest

from samix.report.costs import cost_figure, points_of
from samix.report.groups import group_runs
from samix.report.lines import compare
from samix.report.standing import beside, differences_of, leads_over_paper
from samix.report.tables import html_standing
from samix.report.words import standing_note, verdict
from samix.runs.folder import read_run

CELL = {"table": "tab:x", "row": ["SAMix"], "column": "R-18", "number": 66.5}


def note_paper(folder, *numbers: float) -> None:
    (folder / "run.json").write_text(json.dumps({"paper": [CELL | {"number": n} for n in numbers]}))


@pytest.fixture
def runs(write_run):
    """Plain and SAMix with two seeds, the second of the same seed by seed a point ahead."""
    folders = [write_run("demo/plain", "plain", seed, top1=60.0 + seed) for seed in (0, 1)]
    folders += [write_run("demo/samix", "samix", seed, top1=61.0 + seed) for seed in (0, 1)]
    for folder in folders[2:]:
        note_paper(folder, 66.5, 66.5, 70)
    return list(map(read_run, folders))


def test_value_differences_and_papers(runs):
    plain, samix = differences_of(lines := compare(runs))
    assert plain is None and samix == (1.0, 1.0, 1.0, 2)
    columns = {column.title: column.texts for column in beside(lines)}
    assert columns == {
        "against plain, by seed [95 %]": ("", "+1.00 [+1.00, +1.00] more"),
        "paper": ("", "66.5, 70"),
        "ours − paper": ("", "-5.00, -8.50"),
    }
    page = html_standing(lines)
    assert "<td>+1.00 [+1.00, +1.00] more</td><td>66.5, 70</td>" in page
    assert "tie" in standing_note(lines) and "Paper" in standing_note(lines)


def test_value_runs_of_before_have_no_columns(write_run):
    lines = compare([read_run(write_run())])
    assert beside(lines) == [] and html_standing(lines) == standing_note(lines) == ""


def test_value_no_paper_for_a_group_whose_runs_differ(runs):
    runs[3] = runs[3]._replace(start=None)
    assert leads_over_paper(compare(runs)[1]) == []


def test_value_a_pretraining_is_compared_by_its_linear_classifier(write_run):
    settings, name = {"method": {"name": "moco-v2"}}, "ssl/moco-v2+samix-i"
    folder = write_run(name, "samix-i", settings=settings, summary={"knn": 40.0, "linear": 50.0})
    note_paper(folder, 60.0)
    assert leads_over_paper(compare([read_run(folder)])[0]) == ["-10.00"]
    (folder / "linear.json").write_text(json.dumps({"top1": 61.5}))
    assert leads_over_paper(compare([read_run(folder)])[0]) == ["+1.50"]


def test_value_the_words_call_a_tie_a_tie(write_run):
    tops = {"plain": (60.0, 64.0), "samix": (63.0, 62.0)}
    folders = [write_run(f"demo/{m}", m, s, top1=top1) for m, t in tops.items() for s, top1 in enumerate(t)]
    assert "The first two are a tie" in verdict(compare(map(read_run, folders)))


def test_value_no_tie_where_every_seed_is_ahead(runs):
    assert "tie" not in verdict(compare(runs))


@pytest.mark.parametrize(
    "value", [3, "x", [1], [{"number": "x", "table": "a", "column": "b"}], [{"number": 1}]]
)
def test_error_a_paper_that_is_none(write_run, value):
    folder = write_run()
    (folder / "run.json").write_text(json.dumps({"paper": value}))
    with pytest.raises(ValueError, match="paper must be a list of numbers with their tables"):
        read_run(folder)


def test_value_points_are_means_with_deviations(runs):
    plain, samix = points_of(group_runs(runs), "seconds")
    assert plain.cost == pytest.approx((10.5, np.std([10, 11], ddof=1)))
    assert samix.accuracy == pytest.approx((61.5, np.std([61, 62], ddof=1)))


def test_value_the_cost_figure(runs):
    figure = cost_figure(group_runs(runs))
    time, memory = figure.axes
    assert {text.get_text() for text in time.texts} == {"plain", "samix"}
    assert time.get_xlabel() == "seconds of training" and memory.get_xlabel() == "most memory, MB"
    figure.draw_without_rendering()
    one, two = (text.get_window_extent() for text in time.texts)
    assert not one.overlaps(two)
    assert cost_figure(group_runs(runs[:2])) is None
