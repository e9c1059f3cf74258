"""What the files of a run folder may hold: small enough to read, plain values, and each of its kind.

A run folder may come from anybody. Whoever reads a file of it gets what this module let pass, and else one
sentence that names the file, the value and what is allowed.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

MOST_BYTES = 64 * 2**20
"""Of a text file; metrics.csv of a million epochs has as many."""
MOST_VALUES = 100_000
"""In a YAML file, once its aliases are written out."""


class Kind(NamedTuple):
    """What a value may be."""

    words: str
    holds: Callable[[Any], bool]


def is_whole(value: Any) -> bool:
    """Whether it is a whole number of 64 bits and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def is_number(value: Any) -> bool:
    """Whether it is a number, NaN and infinity among them: a run may have measured these."""
    return isinstance(value, float) or is_whole(value)


def is_finite(value: Any) -> bool:
    """Whether it is a finite number."""
    return is_number(value) and math.isfinite(value)


def is_group(value: Any) -> bool:
    """Whether it is plain values by name, in groups or not."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and (is_plain(each) or is_group(each)) for name, each in value.items()
    )


def is_plain(value: Any) -> bool:
    """Whether it is a number, a truth value, text, nothing, or a list of such."""
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | bool | int | float)


NUMBER = Kind("a number", is_number)
COUNT = Kind("a whole number of at least 0", lambda value: is_whole(value) and value >= 0)
WHOLE = Kind("a whole number", is_whole)
TEXT = Kind("text", lambda value: isinstance(value, str))
GROUP = Kind("settings by name", is_group)
NAMED = Kind("settings with a name", lambda value: is_group(value) and isinstance(value.get("name"), str))
NUMBERS = Kind(
    "numbers by name", lambda value: isinstance(value, dict) and all(map(is_number, value.values()))
)
TEXTS = Kind(
    "texts by name",
    lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
)
TRIPLE = Kind(
    "three numbers",
    lambda value: isinstance(value, list | tuple) and len(value) == 3 and all(map(is_finite, value)),
)
CLASSES = Kind(
    "a list of names",
    lambda value: isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value),
)

VALUES = Kind("values by name", lambda value: isinstance(value, dict))

Schema = Mapping[str, Kind]
"""What is known of a file's values by name; others may stand beside them, and null stands for none."""

SETTINGS: Schema = {
    "mixup": NAMED,
    "method": NAMED,
    **dict.fromkeys(("data", "encoder", "optimizer", "machine", "objective", "terms", "crops"), GROUP),
    **dict.fromkeys(("epochs", "batch_size"), COUNT),
    "seed": WHOLE,
}
IN_SETTINGS: Mapping[str, Schema] = {
    "mixup": {"alpha": NUMBER},
    "objective": {"clean_weight": NUMBER},
    "data": {"name": TEXT, "size": COUNT},
    "encoder": {"name": TEXT},
}
"""Of groups of settings what is read without a recipe."""
START: Schema = {
    **dict.fromkeys(("name", "command", "commit"), TEXT),
    **dict.fromkeys(("train_pictures", "test_pictures"), COUNT),
    **dict.fromkeys(("mean", "std"), TRIPLE),
}
SCORES: Schema = dict.fromkeys(("top1", "top5", "ece", "cross_entropy"), NUMBER)
SUMMARY: Schema = {
    **START,
    **SCORES,
    **dict.fromkeys(("recipe", "mixup"), TEXT),
    **dict.fromkeys(("best", "last", "knn", "knn_top5", "linear", "linear_top5", "nmi", "purity"), NUMBER),
    **dict.fromkeys(("seconds", "images_per_s", "peak_mb"), NUMBER),
    **dict.fromkeys(("heads", "mask"), NUMBERS),
    "seed": WHOLE,
    "epochs": COUNT,
    "versions": TEXTS,
}
DESCRIPTION: Schema = {"encoder": GROUP, "size": COUNT, "classes": CLASSES, "mean": TRIPLE, "std": TRIPLE}
CHECKPOINT: Schema = {
    "step": COUNT,
    "recipe": GROUP,
    **dict.fromkeys(("model", "optimizer", "pictures"), VALUES),
}
PICTURES: Schema = {"count": COUNT, "classes": CLASSES}


def check(place: object, values: Any, schema: Schema, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """The values by name, if they are all of their kinds; `place` is how an error calls them."""
    if not isinstance(values, dict):
        raise ValueError(f"{place} must hold values by name, got {shorten(values)}.")
    if missing := [name for name in needed if values.get(name) is None]:
        raise ValueError(f"{place} lacks {', '.join(missing)}.")
    for name, kind in schema.items():
        if values.get(name) is not None and not kind.holds(values[name]):
            raise ValueError(f"{place}: {name} must be {kind.words}, got {shorten(values[name])}.")
    return values


def shorten(value: Any, most: int = 60) -> str:
    """A value in few words."""
    text = f"{type(value).__name__} of {len(value)}" if isinstance(value, dict | list) else repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def read_text(path: Path) -> str:
    """The text of a file that is one, and not too long."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file.")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, and at most {MOST_BYTES} are read.")
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text: {error}.") from error


def read_json(path: Path) -> Any:
    """The value in a JSON file."""
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not readable JSON: {error}. Remove it and resume the run.") from error


def read_yaml(path: Path) -> Any:
    """The value in a YAML file, whose aliases must not make it much longer than it is."""
    text = read_text(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None and count_values(node, {}) > MOST_VALUES:
            raise yaml.YAMLError(f"it has more than {MOST_VALUES} values")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not readable YAML: {error}.") from error


def count_values(node: yaml.Node, known: dict[int, float]) -> float:
    """How many values a node has with all aliases written out; infinitely many where it holds itself."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = math.inf
    inner = node.value if isinstance(node, yaml.CollectionNode) else []
    parts = [part for pair in inner for part in (pair if isinstance(pair, tuple) else (pair,))]
    known[id(node)] = 1.0 + sum(count_values(part, known) for part in parts)
    return known[id(node)]
