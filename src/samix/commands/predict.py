"""samix predict RUN PICTURES...: what a run's classifier says of pictures, as CSV."""

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from samix.core.words import printable
from samix.data.folders import ENDINGS, find_pictures, read_picture
from samix.runs.classifier import Classifier, load_classifier
from samix.runs.files import write_text


def run(words: list[str]) -> None:
    """Prints or writes one line per picture: its file, the likeliest classes and their probabilities."""
    parser = argparse.ArgumentParser(
        prog="samix predict",
        description="Classify pictures with the classifier of a finished run. Prints CSV: file, class1, "
        "prob1, and so on; pictures are resized and cropped as in the run's test. Files that cannot be read "
        "are skipped.",
    )
    parser.add_argument("run", type=Path, help="run folder, or its folder classifier/")
    parser.add_argument("pictures", type=Path, nargs="+", help="picture files, or folders with some below")
    parser.add_argument("--top", type=int, default=1, help="classes per picture, the likeliest first (1)")
    parser.add_argument("--out", type=Path, help="write the CSV into this file instead of printing it")
    parser.add_argument("--batch", type=int, default=64, help="pictures at a time (64)")
    options = parser.parse_args(words)
    for name in ("top", "batch"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(options, name)}.")
    classifier = load_classifier(options.run)
    if torch.cuda.is_available():
        classifier.cuda()
    rows = as_rows(classifier, list_pictures(options.pictures), options.top, options.batch)
    if options.out is None:
        write_rows(rows, sys.stdout)
        return
    text = io.StringIO()
    count = write_rows(rows, text)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_text(options.out, text.getvalue())
    print(f"{count} pictures -> {options.out}")


def list_pictures(places: Iterable[Path]) -> list[Path]:
    """The files among the places and all pictures below the folders among them, none twice."""
    found: dict[Path, None] = {}
    for place in places:
        if not place.exists():
            raise FileNotFoundError(
                f"{place} does not exist. Name picture files, or folders with some below."
            )
        found |= dict.fromkeys(find_pictures(place) if place.is_dir() else [place])
    if not found:
        raise ValueError(
            f"no picture in {', '.join(map(str, places))} or below ({', '.join(sorted(ENDINGS))})."
        )
    return list(found)


def as_rows(classifier: Classifier, paths: list[Path], top: int, batch: int) -> Iterator[list[str]]:
    """A head line, then a line per picture that can be read; how many cannot is said once, at the end."""
    shown = min(top, len(classifier.classes))
    yield ["file", *(f"{column}{k}" for k in range(1, shown + 1) for column in ("class", "prob"))]
    failures: list[str] = []
    for start in range(0, len(paths), batch):
        read = dict(read_those_that_are_pictures(paths[start : start + batch], failures))
        guesses = classifier.best(classifier.predict(list(read.values()), batch), top)
        for path, likeliest in zip(read, guesses, strict=True):
            cells = [cell for guess in likeliest for cell in (guess.name, f"{guess.prob:.4f}")]
            yield [printable(str(path)), *map(printable, cells)]
    if len(failures) == len(paths):
        raise ValueError(f"none of the {len(paths)} files can be read. The first: {failures[0]}")
    if failures:
        warnings.warn(
            f"skipped {len(failures)} of {len(paths)} files that cannot be read. The first: {failures[0]}",
            stacklevel=2,
        )


def read_those_that_are_pictures(paths: list[Path], failures: list[str]) -> Iterator[tuple[Path, Tensor]]:
    """The pictures that can be read; why the others cannot goes to `failures`."""
    for path in paths:
        try:
            yield path, read_picture(path)
        except (ValueError, OSError) as error:
            failures.append(str(error))


def write_rows(rows: Iterable[list[str]], target: Any) -> int:
    """Writes rows as CSV into an open text file, quoted where needed; returns how many follow the head."""
    writer, count = csv.writer(target, lineterminator="\n"), -1
    for row in rows:
        writer.writerow(row)
        count += 1
    return count
