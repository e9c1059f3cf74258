"""Runs side by side, each in a process of its own with bounded threads.

A worker that was killed from outside (the system was short of memory) is started once more and goes on from
its last checkpoint; one that ended with an error of its own is reported. The others go on in either case.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from samix.commands.suites.plan import Planned, is_finished

LOG = "train.log"
"""What a run says, beside its results."""
TRIES = 2
"""How often a run is started whose process gets killed."""
PAUSE = 0.25
"""Seconds between two looks at the processes."""
PATIENCE = 20.0
"""Seconds that processes have to end after they were asked to."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class Work:
    """Where the runs of a suite stand."""

    runs: Sequence[Planned]
    waiting: deque[Planned] = field(default_factory=deque)
    running: dict[str, Planned] = field(default_factory=dict)
    """By name, in the order of their starts."""
    done: list[Planned] = field(default_factory=list)
    """Finished now or before."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why, by the runs' names."""


Show = Callable[[Work, str], None]
"""What looks at the work, again and again, and is told what happened since, if anything."""


def train_all(runs: Sequence[Planned], jobs: int, threads: int, show: Show) -> Work:
    """Trains what is not finished, `jobs` runs at a time; however it ends, no process is left behind."""
    work = Work(runs, done=[run for run in runs if is_finished(run.folder)])
    work.waiting.extend(run for run in runs if not is_finished(run.folder))
    processes: dict[str, subprocess.Popen[bytes]] = {}
    tries: Counter[str] = Counter()
    with ended_by_signals():
        try:
            while work.waiting or processes:
                while work.waiting and len(processes) < jobs:
                    run = work.waiting.popleft()
                    processes[run.name], work.running[run.name] = start(run, threads), run
                    tries[run.name] += 1
                show(work, "")
                time.sleep(PAUSE)
                for name in [name for name, process in processes.items() if process.poll() is not None]:
                    show(work, take_end(work, name, processes.pop(name).returncode, tries[name]))
        finally:
            stop(processes.values())
    return work


def take_end(work: Work, name: str, code: int, tries: int) -> str:
    """Moves a run whose process ended to where it belongs now, and says what happened."""
    run = work.running.pop(name)
    if code == 0 and is_finished(run.folder):
        work.done.append(run)
        return f"{name}: done"
    if code < 0 and tries < TRIES:
        work.waiting.appendleft(run)
        return f"{name}: killed by signal {-code}, started again"
    work.failed[name] = f"killed by signal {-code}, {tries} times" if code < 0 else last_words(run)
    return f"{name}: failed. {work.failed[name]} (log: {run.folder / LOG})"


def start(run: Planned, threads: int) -> "subprocess.Popen[bytes]":
    """The run's process, with its log beside its results."""
    run.folder.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "samix", *run.words, "--machine.threads", str(threads)]
    bounded = dict.fromkeys(THREAD_VARIABLES, str(threads))
    with (run.folder / LOG).open("a") as log:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env=os.environ | bounded, **own_group(),
        )  # fmt: skip


def own_group() -> dict[str, Any]:
    """A process group for each run: Ctrl-C reaches us alone, and with a run end all processes of it."""
    return {"process_group": 0} if os.name == "posix" else {}


def last_words(run: Planned) -> str:
    """The last line that a run's log has."""
    log = run.folder / LOG
    lines = log.read_text(errors="replace").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def stop(processes: Iterable["subprocess.Popen[bytes]"]) -> None:
    """Asks processes to end, as Ctrl-C does, and ends them where they do not."""
    left, until = list(processes), time.monotonic() + PATIENCE
    try:
        for process in left:
            send(process, signal.SIGINT)
        for process in left:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(until - time.monotonic(), 0))
    finally:  # also where Ctrl-C is pressed again
        for process in left:
            if process.poll() is None:
                send(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
                process.wait()


def send(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Sends a signal to a process and to those that it started."""
    with contextlib.suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets a closed terminal and `kill` end us as Ctrl-C does: our processes must not outlive us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
