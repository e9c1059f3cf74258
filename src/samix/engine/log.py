"""The record of a run: config.yaml and run.json first, a row of metrics.csv per epoch, summary.json last."""

import csv
import io
import json
import math
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
import yaml
from torch import Tensor

from samix.data.datasets import Split
from samix.engine.checkpoint import write_text
from samix.engine.config import Training, policy_name, to_dict
from samix.engine.records import CONFIG, METRICS, START, SUMMARY, Row, read_record, read_rows
from samix.methods.base import Losses
from samix.version import __version__

COLUMNS = (
    "epoch", "seconds", "loss", "images_per_s",
    "mixer", "local", "globally", "mask", "gamma", "gap", "deviation",
    "top1", "top5", "ece", "knn",
)  # fmt: skip


class Start(NamedTuple):
    """What a run is, as far as its settings do not say it."""

    name: str
    """The recipe's."""
    command: str
    commit: str
    """Of samix when the run started; 'a+b' of a run that went on at another one."""
    train_pictures: int
    test_pictures: int


class Meter:
    """Means of an epoch's losses in this process, summed on the device and read once when the epoch ends."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, int] = {}

    def add(self, losses: Losses) -> None:
        """Adds one step."""
        values = {"loss": losses.encoder.detach()}
        if losses.mixer is not None and losses.log is not None:
            values |= {"mixer": losses.mixer.detach(), **losses.log._asdict()}
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, torch.zeros_like(value)) + value
            self.counts[name] = self.counts.get(name, 0) + 1

    def row(self, epoch: int, images: int, began: float) -> Row:
        """The epoch's row; a value that the model does not have (NaN) is left out."""
        means = {name: float(value) / self.counts[name] for name, value in self.sums.items()}
        means |= {"epoch": epoch, "images_per_s": images / (time.monotonic() - began)}
        return {name: value for name, value in means.items() if not math.isnan(value)}


def read_metrics(folder: Path, last_epoch: int) -> list[Row]:
    """The rows up to `last_epoch`: later ones belong to work that a crash undid."""
    path = folder / METRICS
    rows = read_rows(path) if path.exists() else []
    return [row for row in rows if row["epoch"] <= last_epoch]


def write_metrics(folder: Path, rows: list[Row]) -> None:
    """All rows so far, atomically; further heads get columns of their own."""
    extra = sorted({name for row in rows for name in row} - set(COLUMNS))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *extra], lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: f"{v:.6g}" for k, v in row.items()} for row in rows)
    write_text(folder / METRICS, text.getvalue())


def started(folder: Path, name: str, command: str, split: Split, *, resumed: bool) -> Start:
    """The start of a run that begins now or, if resumed, goes on from what the folder holds."""
    commits = [commit()]
    if resumed and (before := read_record(folder / START)) is not None:
        commits = [*before["commit"].split("+"), *commits]
    joined = "+".join(dict.fromkeys(filter(None, commits)))
    return Start(name, command, joined, len(split.train.labels), len(split.test.labels))


def begin(folder: Path, recipe: Training, start: Start) -> None:
    """Makes the folder that of a run with steps to train: its settings, its start, and no summary."""
    (folder / SUMMARY).unlink(missing_ok=True)  # first: it would call the run finished
    write_text(folder / START, json.dumps(start._asdict(), indent=2) + "\n")
    write_text(folder / CONFIG, yaml.safe_dump(to_dict(recipe), sort_keys=False))


def check_complete(folder: Path, rows: list[Row], recipe: Training) -> None:
    """Refuses to sum up a run that is trained to its end but has lost the row of its last epoch."""
    if not rows or rows[-1]["epoch"] < recipe.epochs:
        raise ValueError(
            f"{folder} is trained to its end, but its {METRICS} lacks the last epoch, so there is nothing to "
            "sum up. Bring the file back, or remove the folder to train again."
        )


def summarize(start: Start, recipe: Training, rows: list[Row], results: dict[str, Any]) -> dict[str, Any]:
    """The run in a few numbers: what it is, its results, and what it took."""
    return {
        "recipe": start.name,
        "mixup": policy_name(recipe),
        "seed": recipe.seed,
        "epochs": recipe.epochs,
        **results,
        "seconds": rows[-1]["seconds"],
        "images_per_s": median(row["images_per_s"] for row in rows),
        "peak_mb": peak_memory_mb(),
        "train_pictures": start.train_pictures,
        "test_pictures": start.test_pictures,
        "commit": start.commit,
        "command": start.command,
        "versions": {"samix": __version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """summary.json, whose presence says that the run is finished."""
    write_text(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")


def peak_memory_mb() -> float:
    """The most memory so far: of the GPU where there is one, else of this process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def commit() -> str:
    """The commit of the samix checkout that runs, '' where it runs from an installed package."""
    file = Path(__file__)
    # Of an environment inside somebody's repository, git would name their commit.
    if not git("ls-files", "--", file.name, folder=file.parent):
        return ""
    return git("describe", "--always", "--dirty", "--abbrev=10", "--exclude=*", folder=file.parent)


def git(*words: str, folder: Path) -> str:
    """What git says in a folder; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
