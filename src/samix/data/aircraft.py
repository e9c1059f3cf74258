"""FGVC-Aircraft: 100 variants of aircraft; a list per split names the picture's number and its variant.

Pictures are taken whole, with the strip of 20 pixels at the bottom that names the photographer: torchvision's
reader and the official configurations of AutoMix and SAMix do not cut it off either, though the set's page
advises to.
"""

from pathlib import Path

from samix.data.folders import FolderPart
from samix.data.listed import AGAIN, as_part, check_inside, read_lines
from samix.data.places import Layout

LISTS = {"train": "images_variant_trainval.txt", "val": "images_variant_test.txt"}
VARIANTS = "variants.txt"
LAYOUT = Layout(
    name="aircraft",
    folders=("fgvc-aircraft-2013b/data", "data"),
    files=(*LISTS.values(), VARIANTS, "images"),
    source="fgvc-aircraft-2013b.tar.gz from www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft",
)


def read_aircraft(root: Path, short: int | None = None) -> dict[str, FolderPart]:
    """The official trainval and test pictures, as train and val; classes in the order of variants.txt."""
    text = (root / VARIANTS).read_text(encoding="utf-8")
    classes = tuple(line.strip() for line in text.splitlines() if line.strip())
    labels = {name: label for label, name in enumerate(classes)}

    def read(path: Path) -> list[tuple[str, int]]:
        rows = []
        for line in read_lines(path, "a picture's number and its variant"):
            if line.rest not in labels:
                raise ValueError(f"{line.place} has {line.rest!r}, which is not in {VARIANTS}. {AGAIN}")
            rows.append((check_inside(f"{line.first}.jpg", line.place), labels[line.rest]))
        return rows

    return {part: as_part(root / "images", read(root / name), classes, short) for part, name in LISTS.items()}
