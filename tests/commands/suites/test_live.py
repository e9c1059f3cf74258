"""How far a suite is: what its files tell, how long it takes yet, what a terminal shows."""

import io
from collections import deque
from pathlib import Path

import pytest
from rich.console import Console

from samix.commands.suites.live import Board, Sight, in_words, look_at, seconds_left, sight_of
from samix.commands.suites.plan import plan_suite
from samix.commands.suites.workers import Work

ROWS = [
    {"epoch": 1.0, "seconds": 3.0, "loss": 2.5, "top1": 20.0},
    {"epoch": 2.0, "seconds": 5.0, "loss": 2.0},
]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return plan_suite("demo", ["plain", "samix"], [0, 1], Path("runs"), ["--epochs", "10"])


def test_value_a_run_in_its_metrics():
    assert sight_of([], 10, "top1") == Sight(0, 10, None, None, None)
    assert sight_of(ROWS, 10, "top1") == Sight(2, 10, 2.5, 2.0, 20.0)
    assert sight_of(ROWS, 10, "top1").left == 20.0


def test_value_unreadable_metrics_are_none(runs):
    runs[0].folder.mkdir(parents=True)
    (runs[0].folder / "metrics.csv").write_text("epoch\nmany\n")
    assert look_at(runs[0], "top1").epoch == 0


def test_value_seconds_left(runs):
    plain, samix, *_ = runs
    work = Work(runs, deque(runs[2:]), {plain.name: plain, samix.name: samix})
    sights = {plain.name: Sight(5, 10, 1.0, None, None), samix.name: Sight(0, 10, None, None, None)}
    assert seconds_left(work, {samix.name: sights[samix.name]}, 2) is None
    # Five epochs of plain, and ten of samix and of each waiting run at the usual second.
    assert seconds_left(work, sights, 2) == (5 + 10 + 10 + 10) / 2
    sights[samix.name] = Sight(5, 10, 3.0, None, None)
    assert seconds_left(work, sights, 2) == (5 + 15 + 10 + 30) / 2
    assert seconds_left(Work(runs, running={samix.name: samix}), {samix.name: sights[samix.name]}, 8) == 15


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "–"), (45.4, "45 s"), (600.0, "10 min"), (12600.0, "3.5 h")]
)
def test_value_times_in_words(seconds, words):
    assert in_words(seconds) == words


def show(runs, leave, terminal: bool) -> str:
    """What a board prints: plain is done with seed 0, samix at its second epoch, a run failed."""
    leave("demo/plain", 0, {"top1": 51.5}, epochs=10)
    runs[1].folder.mkdir(parents=True)
    (runs[1].folder / "metrics.csv").write_text("epoch,seconds,loss,top1\n1,3,2.5,20\n2,5,2,\n")
    work = Work(runs, deque(runs[3:]), {runs[1].name: runs[1]}, [runs[0]], {runs[2].name: "because"})
    console = Console(file=io.StringIO(), force_terminal=terminal, width=110)
    with Board(console, "demo", "top1", 2) as board:
        board(work, "")
        board(work, "demo/plain seed 0: done")
    return console.file.getvalue()


def test_value_lines_where_there_is_no_terminal(runs, leave):
    line = "demo/plain seed 0: done, top1 51.50 (1 of 4, about 22 s left)\n"
    assert show(runs, leave, terminal=False) == line


def test_value_one_table_on_a_terminal(runs, leave):
    text = show(runs, leave, terminal=True)
    for words in (
        "demo, 1 of 4 runs",
        "51.50",
        "seed 0: epoch 2/10",
        "20.00",
        "1/2",
        "seed 1: failed",
        "20 s",
    ):
        assert words in text
