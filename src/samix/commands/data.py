"""samix data NAME PATH: whether a copy of a data set is whole."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from samix.core.words import printable, suggest
from samix.data import DATASETS, OFFICIAL, Data, Official, Split
from samix.data.checking import Found, check_set, find_problems, parts_of
from samix.data.readers import EMBEDDED, WITH_TEST
from samix.data.shard_index import find_shards, load_index
from samix.data.subsets import left_out

Bars = Callable[[str, int], Callable[[], None]]
"""Begins a bar of so many steps; what it gives back takes one."""


def run(words: list[str]) -> int:
    """Prints what a copy holds; 1 if something is wrong with it."""
    parser = argparse.ArgumentParser(
        prog="samix data",
        usage="samix data NAME [PATH] [--quick] [--as SET] [--json]",
        description="Check a copy of a data set: numbers of pictures and classes against the official ones, "
        "and whether every picture can be read. Exit code 1 if something is wrong.",
    )
    parser.add_argument("name", help=f"as in --data.name: {', '.join(files())}")
    parser.add_argument("path", nargs="?", help="as in --data.root (default: $SAMIX_DATA, then ./data)")
    parser.add_argument(
        "--quick", action="store_true", help="decode no picture, only look whether files are there"
    )
    parser.add_argument(
        "--as", dest="official", metavar="SET",
        help=f"compare a folder or shards with the numbers of this set: {', '.join(OFFICIAL)}",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(words)
    official = official_of(options.name, options.official)
    with bars(shown=not options.json) as begin:
        split = read(options.name, options.path, begin)
        parts = parts_of(split)
        found = {
            part: check_set(images, quick=options.quick, tell=begin(part, len(images.labels)))
            for part, images in parts.items()
        }
    unreadable = dict.fromkeys(path for images in parts.values() for path in left_out(images))
    problems = find_problems(found, official, list(unreadable))
    if options.json:
        print(json.dumps(as_record(options.name, found, official, problems), indent=2))
    else:
        show(options.name, found, official, problems)
    return 1 if problems else 0


def files() -> list[str]:
    """The data sets that read files."""
    return [name for name in DATASETS if name not in EMBEDDED]


def official_of(name: str, other: str | None) -> Official | None:
    """The numbers to compare with, if there are any."""
    if name not in files():
        raise ValueError(f"unknown dataset {suggest(name, files())}")
    if other is not None and other not in OFFICIAL:
        raise ValueError(f"--as: unknown set {suggest(other, OFFICIAL)}")
    return OFFICIAL.get(other or name)


def read(name: str, path: str | None, begin: Bars) -> Split:
    """The set as its reader gives it, no picture decoded; tested on the official test pictures."""
    if name == "shards" and path is not None and Path(path).is_dir():
        for part, tars in find_shards(Path(path)).items():
            if tars:
                step = begin(f"index of {part}", len(tars))
                load_index(Path(path), part, tars, lambda tar, step=step: step())  # type: ignore[misc]
    last = name in WITH_TEST and name in OFFICIAL
    return DATASETS[name](Data(name=name, root=path, test="test" if last else "val").wanted)


@contextmanager
def bars(*, shown: bool) -> Iterator[Bars]:
    """Progress bars on the terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as progress:

        def begin(what: str, steps: int) -> Callable[[], None]:
            task = progress.add_task(what, total=steps)
            return lambda: progress.advance(task)

        yield begin


def as_record(
    name: str, found: dict[str, Found], official: Official | None, problems: list[str]
) -> dict[str, Any]:
    """The result for machines."""
    return {
        "name": name,
        "parts": {part: each._asdict() for part, each in found.items()},
        "official": None if official is None else official._asdict(),
        "problems": problems,
    }


def show(name: str, found: dict[str, Found], official: Official | None, problems: list[str]) -> None:
    """The result as a table and a sentence per problem."""
    table = Table(
        "part", "pictures", "official", "classes", "per class", "mean size", "unreadable", title=name
    )
    for part, each in found.items():
        should = None if official is None else {"train": official.train, "test": official.test}.get(part)
        size = "" if each.height is None else f"{each.height:g} x {each.width:g}"
        table.add_row(
            part, f"{each.pictures:,}", "" if should is None else f"{should:,}", f"{each.classes:,}",
            f"{each.fewest:,} to {each.most:,}", size, f"{each.unreadable:,}",
        )  # fmt: skip
    console = Console()
    console.print(table)
    for problem in problems:
        console.print(escape(printable(problem)), soft_wrap=True)
    if not problems:
        console.print(
            "nothing wrong" + (" (there are no official numbers to compare with)" if official is None else "")
        )
