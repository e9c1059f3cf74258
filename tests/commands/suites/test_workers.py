"""Processes of a suite: side by side, killed, failing, interrupted; small programs stand in for training."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from samix.commands.suites import workers
from samix.commands.suites.plan import plan_suite
from samix.commands.suites.workers import LOG, stop, train_all

FINISH = "open('summary.json', 'w').write('{}')"
KILLED_ONCE = f"""
import os, pathlib, signal
if pathlib.Path('tried').exists():
    {FINISH}
else:
    pathlib.Path('tried').touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
ALWAYS_KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
FAILS = "import sys; print('samix: no such pictures.'); sys.exit(2)"
WAITS = "import time; time.sleep(60)"


@pytest.fixture
def runs(tmp_path):
    """Four runs of the embedded set, in a folder of their own."""
    return plan_suite("demo", ["plain", "mixup", "cutmix", "samix"], [0], tmp_path / "runs")


@pytest.fixture
def programs(monkeypatch):
    """What stands in for `samix train`, by row; else a program that finishes at once. Notes the starts."""
    chosen, started = {}, []

    def start(run, threads):
        started.append(run.row)
        run.folder.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-S", "-c", chosen.get(run.row, FINISH)]
        with (run.folder / LOG).open("a") as log:
            return subprocess.Popen(words, cwd=run.folder, stdout=log, **workers.own_group())

    monkeypatch.setattr(workers, "start", start)
    monkeypatch.setattr(workers, "PAUSE", 0.02)
    monkeypatch.setattr(workers, "PATIENCE", 1.0)
    return chosen, started


def test_value_all_runs_are_trained_and_no_more_at_a_time_than_asked(runs, programs):
    most, events = [], []

    def show(work, event):
        most.append(len(work.running))
        events.append(event)

    work = train_all(runs, 2, 1, show)
    assert {run.row for run in work.done} == {run.row for run in runs} and not work.failed
    assert max(most) == 2 and sum(event.endswith(": done") for event in events) == 4


def test_value_finished_runs_are_left_alone(runs, programs):
    train_all(runs[:1], 1, 1, lambda *_: None)
    work = train_all(runs[:2], 1, 1, lambda *_: None)
    assert programs[1] == ["plain", "mixup"] and len(work.done) == 2


def test_value_a_killed_worker_is_started_once_more(runs, programs):
    programs[0].update(mixup=KILLED_ONCE, cutmix=ALWAYS_KILLED, samix=FAILS)
    events = []
    work = train_all(runs, 2, 1, lambda work, event: events.append(event))
    assert {run.row for run in work.done} == {"plain", "mixup"}
    assert work.failed == {
        "demo/cutmix seed 0": "killed by signal 9, 2 times",
        "demo/samix seed 0": "samix: no such pictures.",
    }
    assert sorted(programs[1]) == ["cutmix", "cutmix", "mixup", "mixup", "plain", "samix"]
    assert "demo/mixup seed 0: killed by signal 9, started again" in events
    assert any("no such pictures" in event and LOG in event for event in events)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_value_an_interruption_ends_all_processes(runs, programs):
    programs[0].update(dict.fromkeys(("plain", "mixup"), WAITS))
    before, seen = set(children()), []

    def show(work, event):
        if len(work.running) == 2 and not seen:
            seen.extend(set(children()) - before)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_all(runs, 2, 1, show)
    assert len(seen) == 2 and not set(seen) & set(children())


def children() -> list[str]:
    """The processes that this one has started and that have not ended."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_value_who_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.3)
    deaf = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", deaf], stdout=subprocess.PIPE, **workers.own_group()
    )
    process.stdout.readline()
    began = time.monotonic()
    stop([process])
    assert process.returncode is not None and time.monotonic() - began < 10


def test_value_threads_are_bounded(runs, monkeypatch):
    seen, popen = {}, subprocess.Popen

    def note(words, **options):
        seen.update(options, words=words)
        return popen([sys.executable, "-S", "-c", ""])

    monkeypatch.setattr(workers.subprocess, "Popen", note)
    workers.start(runs[0], 3).wait()
    assert seen["words"][-2:] == ["--machine.threads", "3"] and seen["words"][3:5] == ["train", "demo/plain"]
    assert seen["env"]["OMP_NUM_THREADS"] == "3" and seen["stdin"] == subprocess.DEVNULL
