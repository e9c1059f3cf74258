"""What a run writes of itself: metrics.csv in rows, config.yaml, run.json and summary.json."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from samix.runs.records import (
    COLUMNS,
    Start,
    begin_run,
    read_config,
    read_metrics,
    read_record,
    read_rows,
    write_metrics,
    write_summary,
)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=6), st.integers(1, 6))
def test_invariant_metrics_come_back(tmp_path_factory, values, last):
    folder = tmp_path_factory.mktemp("metrics")
    rows = [{"epoch": float(n), "loss": v, "top1_one_q": v / 2} for n, v in enumerate(values, start=1)]
    write_metrics(folder, rows)
    found = read_metrics(folder, last)
    assert [row["epoch"] for row in found] == [n for n in range(1, len(values) + 1) if n <= last]
    for row, expected in zip(found, rows, strict=False):
        assert row == expected, "to the last digit: a resumed run sums up what it measured before"


def test_value_metrics_columns(tmp_path):
    write_metrics(
        tmp_path, [{"epoch": 1.0, "loss": 2.0}, {"epoch": 2.0, "loss": 1.0, "top1": 50.0, "top1_mix_k": 40.0}]
    )
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    assert lines[0].split(",") == [*COLUMNS, "top1_mix_k"]
    assert len(lines) == 3
    assert "top1" not in read_metrics(tmp_path, 1)[0]


def test_value_no_metrics_yet(tmp_path):
    assert read_metrics(tmp_path, 5) == []


@pytest.mark.parametrize(
    "rest", ["3,0.", "3", "3,0.25"], ids=["in a number", "in a row", "before the line end"]
)
def test_value_a_cut_last_line_is_left_out(tmp_path, rest):
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,loss,top1\n1,2.0,\n2,1.5,40\n" + rest)
    assert read_rows(path) == [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.5, "top1": 40}]


def test_value_an_empty_or_cut_header_gives_no_rows(tmp_path):
    path = tmp_path / "metrics.csv"
    for text in ("", "epoch,lo", "epoch,loss\n"):
        path.write_text(text)
        assert read_rows(path) == []


def test_error_of_a_broken_line_in_the_middle(tmp_path):
    path = tmp_path / "metrics.csv"
    for line in ("1,two", "1"):
        path.write_text(f"epoch,loss\n{line}\n2,1.5\n")
        with pytest.raises(ValueError, match=r"metrics\.csv, line 2"):
            read_rows(path)


def test_value_a_run_that_begins_tells_its_settings_and_its_start_and_is_not_finished(tmp_path):
    settings = {
        "mixup": {"name": "cutmix", "alpha": 1.0},
        "epochs": 3,
        "machine": {"threads": None, "sync_norm": False},
    }
    start = Start("demo/cutmix", "samix train demo/cutmix", "abc", 24, 12)
    write_summary(tmp_path, {"top1": 50.0})
    assert read_record(tmp_path / "summary.json") == {"top1": 50.0}
    (tmp_path / "knn.json").write_text('{"top1": 40.0}')
    begin_run(tmp_path, settings, start)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "run.json"]
    assert read_config(tmp_path / "config.yaml") == settings
    assert list(yaml.safe_load((tmp_path / "config.yaml").read_text())) == ["mixup", "epochs", "machine"]
    told = {name: value for name, value in start._asdict().items() if value is not None}
    assert read_record(tmp_path / "run.json") == told
    assert Start(**read_record(tmp_path / "run.json")) == start
    assert read_record(tmp_path / "summary.json") is None
