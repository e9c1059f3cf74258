"""iNaturalist 2017 and 2018: thousands of species in nature; a JSON file per split, in COCO's manner."""

import json
from pathlib import Path
from typing import Any

from samix.data.folders import FolderPart
from samix.data.listed import AGAIN, as_part, check_inside
from samix.data.places import Layout

YEARS = {2017: "train_val_images", 2018: "train_val2018"}
"""The folder of the pictures. Names of files in the lists begin with it."""
NAMES = "categories.json"
"""Readable names of 2018, which has a file of its own for them."""


def layout(year: int) -> Layout:
    """How a year's set lies on the disk."""
    return Layout(
        name=f"inat{year}",
        folders=(f"inat{year}", f"inaturalist{year}", f"iNaturalist{year}"),
        files=(f"train{year}.json", f"val{year}.json", YEARS[year]),
        source=f"{YEARS[year]}.tar.gz, train{year} and val{year} (github.com/visipedia/inat_comp)",
    )


def read_inaturalist(root: Path, year: int, short: int | None = None) -> dict[str, FolderPart]:
    """The official train and val pictures; classes in the order of the official numbers."""
    lists = {part: root / f"{part}{year}.json" for part in ("train", "val")}
    ids, classes = read_categories(lists["train"], root / NAMES)
    return {part: as_part(root, read_rows(path, ids), classes, short) for part, path in lists.items()}


def read_categories(path: Path, readable: Path) -> tuple[dict[int, int], tuple[str, ...]]:
    """The label of every official number, and the names of the classes."""
    try:
        found = {int(each["id"]): str(each["name"]) for each in read_json(path)["categories"]}
        better = read_json(readable) if readable.is_file() else []
        names = found | {int(each["id"]): str(each["name"]) for each in better if int(each["id"]) in found}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"cannot read the categories of {path}: {error!r}. {AGAIN}") from error
    ids = {each: label for label, each in enumerate(sorted(found))}
    return ids, tuple(names[each] for each in ids)


def read_rows(path: Path, ids: dict[int, int]) -> list[tuple[str, int]]:
    """Every picture's file and label."""
    whole = read_json(path)
    try:
        files = {each["id"]: str(each["file_name"]) for each in whole["images"]}
        rows = [(files[each["image_id"]], ids[each["category_id"]]) for each in whole["annotations"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"cannot read the list {path}: {error!r}. {AGAIN}") from error
    if not rows:
        raise ValueError(f"{path} lists no picture. {AGAIN}")
    for name, _ in rows:
        check_inside(name, str(path))
    return rows


def read_json(path: Path) -> Any:
    """A JSON file; a damaged one is named."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"cannot read the list {path}: {error}. {AGAIN}") from error
