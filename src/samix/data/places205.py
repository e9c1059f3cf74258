"""Places205: 2.4 million pictures of scenes at 256 x 256; a list per split with file and label."""

from collections.abc import Iterator
from pathlib import Path

from samix.data.folders import FolderPart
from samix.data.listed import AGAIN, as_number, as_part, check_inside, read_lines
from samix.data.places import Layout

LISTS = {part: f"trainvalsplit_places205/{part}_places205.csv" for part in ("train", "val")}
PICTURES = ("data/vision/torralba/deeplearning/images256", "images256")
"""Where the archive unpacks them, and where it is often moved."""
CLASSES = 205
LAYOUT = Layout(
    name="places205",
    folders=("places205", "Places205"),
    files=tuple(LISTS.values()),
    source="imagesPlaces205_resize.tar.gz and trainvalsplit_places205.tar.gz from places.csail.mit.edu",
)


def read_places205(root: Path, short: int | None = None) -> dict[str, FolderPart]:
    """The official train and val pictures; a class is called as the folder of its pictures."""
    pictures = next((root / name for name in PICTURES if (root / name).is_dir()), None)
    if pictures is None:
        raise FileNotFoundError(
            f"{root} has neither {PICTURES[0]} nor {PICTURES[1]}. Get {LAYOUT.source} and unpack both there."
        )
    names: dict[int, str] = {}

    def read(path: Path) -> Iterator[tuple[str, int]]:
        for line in read_lines(path, "a file and its label", last=True):
            label = as_number(line.rest, 0, CLASSES - 1, line.place)
            names.setdefault(label, check_inside(line.first, line.place).rpartition("/")[0])
            yield line.first, label

    parts = {part: as_part(pictures, read(root / name), (), short) for part, name in LISTS.items()}
    if sorted(names) != list(range(len(names))):
        missing = min(set(range(len(names))) - set(names))
        raise ValueError(f"{root / LISTS['train']} has no picture with the label {missing}. {AGAIN}")
    # 'a/abbey' is the abbey: the first folder is only its letter.
    classes = tuple(names[label].partition("/")[2] or names[label] for label in range(len(names)))
    return {part: (paths, labels, classes) for part, (paths, labels, _) in parts.items()}
