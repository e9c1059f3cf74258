"""How far the runs of a suite are: one live table on a terminal, a line per event elsewhere."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from samix.commands.suites.plan import Planned
from samix.commands.suites.workers import Work
from samix.core.comparing import spread
from samix.core.words import printable
from samix.runs.files import SUMMARY
from samix.runs.records import Row, read_metrics, read_record


class Sight(NamedTuple):
    """What the files of a run tell while it trains."""

    epoch: int
    epochs: int
    seconds: float | None
    """Of an epoch, as a rule; None until one is over."""
    loss: float | None
    accuracy: float | None

    @property
    def left(self) -> float | None:
        """Seconds to the end, None while nobody knows."""
        return None if self.seconds is None else (self.epochs - self.epoch) * self.seconds


def look_at(run: Planned, measure: str) -> Sight:
    """A run as its metrics show it now."""
    try:
        rows = read_metrics(run.folder)
    except (ValueError, OSError):  # it may be anybody's, or be gone; the run itself will say so
        rows = []
    return sight_of(rows, run.recipe.epochs, measure)


def sight_of(rows: Sequence[Row], epochs: int, measure: str) -> Sight:
    """The last epoch, the mean time of one, the last loss and test."""
    if not rows:
        return Sight(0, epochs, None, None, None)
    last, tested = rows[-1], [row[measure] for row in rows if measure in row]
    seconds = last["seconds"] / last["epoch"] if "seconds" in last and last["epoch"] else None
    return Sight(int(last["epoch"]), epochs, seconds, last.get("loss"), tested[-1] if tested else None)


def result_of(run: Planned, measure: str) -> float | None:
    """What a finished run came to."""
    value = (read_record(run.folder / SUMMARY) or {}).get(measure)
    return None if value is None else float(value)


def seconds_left(work: Work, sights: Mapping[str, Sight], jobs: int) -> float | None:
    """How long all of it takes yet, if rows without a finished epoch are as fast as the others."""
    known = [sight.seconds for sight in sights.values() if sight.seconds is not None]
    if not known:
        return None
    usual = sum(known) / len(known)
    speeds = {work.running[name].row: sight.seconds for name, sight in sights.items() if sight.seconds}
    running = [
        (sight.epochs - sight.epoch) * (sight.seconds if sight.seconds is not None else usual)
        for sight in sights.values()
    ]
    waiting = [run.recipe.epochs * speeds.get(run.row, usual) for run in work.waiting]
    return max([sum(running + waiting) / jobs, *running])


def in_words(seconds: float | None) -> str:
    """'45 s', '12 min', '3.5 h', or a dash.

    >>> in_words(4000.0)
    '1.1 h'
    """
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


class Board:
    """Shows the work whenever it is called with it."""

    def __init__(self, console: Console, title: str, measure: str, jobs: int) -> None:
        self.console, self.title, self.measure, self.jobs = console, title, measure, jobs
        self.results: dict[str, float | None] = {}
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> "Board":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, work: Work, event: str) -> None:
        """Looks at the runs; `event` is what happened since the last look, if anything."""
        for run in work.done:
            if run.name not in self.results:
                self.results[run.name] = result_of(run, self.measure)
        if self.live is None and not event:
            return
        sights = {name: look_at(run, self.measure) for name, run in work.running.items()}
        left = seconds_left(work, sights, self.jobs)
        if event:
            self.console.print(Text(printable(self.sentence(work, event, left))), soft_wrap=True)
        if self.live is not None:
            self.live.update(self.table(work, sights, left), refresh=True)

    def sentence(self, work: Work, event: str, left: float | None) -> str:
        """An event with its result, and how far all is: 'demo/samix seed 0: done, top1 70.10 (3 of 12)'."""
        result = self.results.get(event.removesuffix(": done"))
        value = "" if result is None else f", {self.measure} {result:.2f}"
        rest = "" if left is None else f", about {in_words(left)} left"
        return f"{event}{value} ({len(work.done)} of {len(work.runs)}{rest})"

    def table(self, work: Work, sights: Mapping[str, Sight], left: float | None) -> RenderableType:
        """One line per row of the suite."""
        table = Table(title=f"{self.title}, {len(work.done)} of {len(work.runs)} runs", title_justify="left")
        table.add_column("row", overflow="fold")
        table.add_column("now", overflow="fold")
        for name in ("seeds", "loss", f"{self.measure} so far", "left"):
            table.add_column(name, justify="right", no_wrap=True)
        table.caption = f"about {in_words(left)} left; Ctrl-C stops, the same command goes on"
        table.caption_justify = "left"
        for row in dict.fromkeys(run.row for run in work.runs):
            table.add_row(*map(Text, self.cells(row, work, sights)))
        return table

    def cells(self, row: str, work: Work, sights: Mapping[str, Sight]) -> tuple[str, ...]:
        """The row's name, what it does, seeds that are done, loss, accuracy, time left."""
        runs = [run for run in work.runs if run.row == row]
        done = [run for run in work.done if run.row == row]
        now = [(run, sights[run.name]) for run in runs if run.name in sights]
        states = [f"seed {run.seed}: epoch {sight.epoch}/{sight.epochs}" for run, sight in now]
        states += [f"seed {run.seed}: failed" for run in runs if run.name in work.failed]
        losses = [f"{sight.loss:.3f}" for _, sight in now if sight.loss is not None]
        finished = [value for run in done if (value := self.results.get(run.name)) is not None]
        tested = [f"{sight.accuracy:.2f}" for _, sight in now if sight.accuracy is not None]
        accuracy = spread(finished).text(2) if finished else ", ".join(tested)
        ends = [sight.left for _, sight in now if sight.left is not None]
        left = in_words(max(ends, default=None)) if now else ""
        return row, ", ".join(states), f"{len(done)}/{len(runs)}", ", ".join(losses), accuracy, left
