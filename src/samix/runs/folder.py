"""Run folders as values: what a run was told and what it measured; no model is built or loaded."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from samix.runs.files import CONFIG, KNN, LINEAR, START, SUMMARY
from samix.runs.records import Row, read_config, read_metrics, read_record


class Run(NamedTuple):
    """One run folder."""

    path: Path
    config: dict[str, Any]
    rows: list[Row]
    """One per epoch; a value that was not measured is not in its row."""
    summary: dict[str, Any] | None
    """None until the run is finished."""
    start: dict[str, Any] | None = None
    """Name, command and commit with which it started; None of older versions."""
    probes: dict[str, float] = {}
    """Top-1 of `samix knn` and `samix linear`, by the names of their files, where they were run."""

    @property
    def recipe(self) -> str:
        """The recipe's name; a run that does not say it is named after its folder."""
        named = (self.summary or {}).get("recipe") or (self.start or {}).get("name")
        if named:
            return str(named)
        parent = self.path.resolve().parent
        return f"{parent.parent.name}/{parent.name}"

    @property
    def mixup(self) -> str:
        """The policy's name."""
        return str(self.config["mixup"]["name"])

    @property
    def paper(self) -> tuple[float, ...]:
        """What the paper's tables print for the run's recipe, each number once."""
        cells = (self.start or {}).get("paper") or ()
        return tuple(dict.fromkeys(float(cell["number"]) for cell in cells))

    @property
    def seed(self) -> int:
        """The seed of everything random in the run."""
        return int(self.config.get("seed") or 0)

    def series(self, column: str) -> dict[float, float]:
        """One column of the metrics by epoch, where it was measured."""
        return {row["epoch"]: row[column] for row in self.rows if column in row and "epoch" in row}


def read_run(path: Path) -> Run:
    """The run in the folder `path`, finished or not."""
    path = Path(path)
    if not (path / CONFIG).is_file():
        raise FileNotFoundError(f"{path} is not a run folder: it has no {CONFIG}.")
    summary, start = (read_record(path / name) for name in (SUMMARY, START))
    found = {name: read_record(path / name) for name in (KNN, LINEAR)}
    probes = {name: told["top1"] for name, told in found.items() if told and told.get("top1") is not None}
    return Run(path, read_config(path / CONFIG), read_metrics(path), summary, start, probes)


def find_runs(paths: Iterable[Path]) -> list[Run]:
    """All runs in `paths`, each a run folder or a folder somewhere above run folders; no run twice."""
    folders: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist. Give a run folder, or a folder above some.")
        found = {path} if (path / CONFIG).is_file() else run_folders(path)
        if not found:
            raise FileNotFoundError(
                f"no run in {path}: no {CONFIG} in it or below it describes one. "
                "Start one: samix train RECIPE."
            )
        folders |= {folder.resolve(): folder for folder in found}
    return sorted(map(read_run, folders.values()), key=lambda run: (run.recipe, run.seed, str(run.path)))


def run_folders(path: Path) -> set[Path]:
    """The run folders below `path`.

    Other programs have a config.yaml too; a tracker even writes its own inside a run.
    """
    found: set[Path] = set()
    for config in sorted(path.rglob(CONFIG), key=lambda each: len(each.parts)):  # outer folders first
        if not config.is_file() or not found.isdisjoint(config.parents):
            continue
        try:
            read_config(config)
        except ValueError:
            continue
        found.add(config.parent)
    return found
