"""Where the files of a published set are looked for, and what is said if they are not there."""

import os
from pathlib import Path
from typing import NamedTuple


class Layout(NamedTuple):
    """How a published set lies on the disk once its archives are unpacked."""

    name: str
    """As in DATASETS."""
    folders: tuple[str, ...]
    """Where it may lie below the given root, which may itself be that folder."""
    files: tuple[str, ...]
    """Files and folders that must be there."""
    source: str
    """What to get, and where."""


def search_places(root: str | None) -> list[Path]:
    """The given root, or without one $SAMIX_DATA and ./data."""
    return [Path(root)] if root else [Path(p) for p in (os.environ.get("SAMIX_DATA"), "data") if p]


def find_layout(root: str | None, layout: Layout) -> Path:
    """The folder of a published set; missing files are named."""
    places = [place / folder for place in search_places(root) for folder in (*layout.folders, ".")]
    found = next((place for place in places if any((place / file).exists() for file in layout.files)), None)
    expected = f"Expected {', '.join(layout.files)} in one folder."
    again = f"Get {layout.source} and unpack it"
    if found is None:
        looked = ", ".join(str(place.absolute()) for place in places)
        raise FileNotFoundError(
            f"dataset '{layout.name}' not found: looked in {looked}. {expected} {again} there, or say where "
            "it is with --data.root or the variable SAMIX_DATA."
        )
    for file in layout.files:
        if not (found / file).exists():
            raise FileNotFoundError(f"{found / file} is missing. {expected} {again} again.")
    return found
