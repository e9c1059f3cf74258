"""samix knn RUN: k-nearest-neighbour accuracy of a run's encoder."""

import argparse

from samix.commands.probing import open_run, publish, split_words
from samix.evaluate import knn_accuracy

NEIGHBOURS = 200
"""The usual number (Wu et al.)."""


def run(words: list[str]) -> None:
    """Prints top-1 and top-5 and writes knn.json."""
    parser = argparse.ArgumentParser(
        prog="samix knn",
        usage="samix knn RUN [--k N] [--tau 0.07] [--json] [--data.field value ...]",
        description="Weighted k-nearest-neighbour accuracy of a run's encoder: no training. Writes knn.json "
        "in the run folder. Fields of data and machine may be overridden, for example --data.root.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--k",
        type=int,
        help=f"neighbours that vote (default: as many as in a pre-training's own tests; else {NEIGHBOURS})",
    )
    parser.add_argument("--tau", type=float, default=0.07, help="temperature of the votes (default: 0.07)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    folder, options, rest = split_words(parser, words)
    opened = open_run(folder, rest)
    train, test = opened.features(opened.split.train), opened.features(opened.split.test)
    k = (opened.knn or NEIGHBOURS) if options.k is None else options.k
    score = knn_accuracy(*train, *test, classes=len(opened.split.train.classes), k=k, tau=options.tau)
    result = score._asdict() | {"k": min(k, len(train[1])), "tau": options.tau}
    publish(folder, "knn", words, result, as_json=options.json)
