"""What a run says of itself: its start, before the first step, and its summary, after the last."""

from pathlib import Path
from statistics import median

from samix.core.shapes import Stats
from samix.data.datasets import Split
from samix.engine.recipe import Recipe, policy_name
from samix.runs.files import METRICS, START
from samix.runs.provenance import commit, peak_memory_mb, versions
from samix.runs.records import Row, Start, Summary, read_record


def describe_start(
    folder: Path, name: str, command: str, split: Split, *, resumed: bool, stats: Stats | None = None
) -> Start:
    """The start of a run that begins now or, if resumed, goes on from what the folder holds.

    `stats` is the normalisation where the encoder's first weights decide it.
    """
    commits = [commit()]
    if resumed and (before := read_record(folder / START)) is not None:
        commits = [*(before.get("commit") or "").split("+"), *commits]
    joined = "+".join(dict.fromkeys(filter(None, commits)))
    pictures = (len(split.train.labels), len(split.test.labels))
    return Start(name, command, joined, *pictures, *(stats or (None, None)))


def check_complete(folder: Path, rows: list[Row], recipe: Recipe) -> None:
    """Refuses to sum up a run that is trained to its end but has lost the row of its last epoch."""
    if not rows or rows[-1]["epoch"] < recipe.epochs:
        raise ValueError(
            f"{folder} is trained to its end, but its {METRICS} lacks the last epoch, so there is nothing to "
            "sum up. Bring the file back, or remove the folder to train again."
        )


def summarize(start: Start, recipe: Recipe, rows: list[Row], results: Summary) -> Summary:
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
        "versions": versions(),
    }
