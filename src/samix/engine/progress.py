"""What a person sees while training: a live bar on a terminal, a line per epoch elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from samix.contract import Losses
from samix.engine.recipe import Recipe, policy_name
from samix.runs.records import Row

LINES = 10
"""Lines per run where there is no terminal."""
TESTS = {"top1": "top-1", "knn": "k-NN"}
"""Results of an epoch worth showing."""


class Progress:
    """Epoch, loss, accuracy, images/s and time left."""

    def __init__(self, recipe: Recipe, steps: int, *, quiet: bool = False) -> None:
        self.console = Console(quiet=quiet)
        self.name, self.epochs, self.steps = policy_name(recipe), recipe.epochs, steps
        self.batch, self.accuracy = recipe.batch_size, ""
        self.began, self.done = time.monotonic(), 0
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=quiet or not self.console.is_terminal,
        )
        self.task = self.bar.add_task(f"{self.name:<8}", total=steps * recipe.epochs, text="")

    def __enter__(self) -> "Progress":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def step(self, epoch: int, step: int, losses: Losses) -> None:
        """One step is done."""
        self.done += 1
        if self.bar.disable:
            return
        text = f"epoch {epoch}/{self.epochs}  loss {losses.encoder.item():.3f}  "
        text += self.accuracy
        rate = self.done * self.batch / max(time.monotonic() - self.began, 1e-9)
        self.bar.update(self.task, completed=step + 1, text=text + f"{rate:,.0f} images/s")

    def epoch(self, row: Row) -> None:
        """An epoch is done."""
        tested = "".join(f"{label} {row[name]:.2f} %  " for name, label in TESTS.items() if name in row)
        self.accuracy = tested or self.accuracy
        epoch = int(row["epoch"])
        if not self.console.is_terminal and (
            epoch % max(self.epochs // LINES, 1) == 0 or epoch == self.epochs
        ):
            self.console.print(
                f"{self.name:<8} epoch {epoch}/{self.epochs}  loss {row['loss']:.3f}  {tested}"
                f"{row['images_per_s']:,.0f} images/s",
                highlight=False,
            )
