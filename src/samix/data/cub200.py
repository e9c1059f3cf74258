"""CUB-200-2011: 200 bird species; three lists by picture number name the file, the class and the split."""

from pathlib import Path

from samix.data.folders import FolderPart
from samix.data.listed import AGAIN, as_number, as_part, check_inside, read_lines
from samix.data.places import Layout

LAYOUT = Layout(
    name="cub200",
    folders=("CUB_200_2011",),
    files=("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt", "images"),
    source="CUB_200_2011.tgz from www.vision.caltech.edu/datasets/cub_200_2011",
)


def read_cub200(root: Path, short: int | None = None) -> dict[str, FolderPart]:
    """The official train and test pictures, as train and val; classes in the order of their numbers."""
    classes = read_classes(root / "classes.txt")
    files = {line.first: check_inside(line.rest, line.place) for line in lines(root, "images.txt", "a file")}
    labels, learned = (
        {line.first: as_number(line.rest, least, most, line.place) for line in lines(root, name, what)}
        for name, what, least, most in (
            ("image_class_labels.txt", "a class", 1, len(classes)),
            ("train_test_split.txt", "0 or 1", 0, 1),
        )
    )
    for found, name in ((labels, "image_class_labels.txt"), (learned, "train_test_split.txt")):
        if found.keys() != files.keys():
            raise ValueError(f"{root / name} and images.txt are about different pictures. {AGAIN}")
    return {
        part: as_part(
            root / "images",
            [(file, labels[key] - 1) for key, file in files.items() if learned[key] == kept],
            classes,
            short,
        )
        for part, kept in (("train", 1), ("val", 0))
    }


def lines(root: Path, name: str, what: str) -> list:
    """The lines of one of the three lists."""
    return list(read_lines(root / name, f"a picture's number and {what}"))


def read_classes(path: Path) -> tuple[str, ...]:
    """The names without their numbers: `001.Black_footed_Albatross` is Black footed Albatross."""
    found = read_lines(path, "a class's number and its name")
    return tuple(line.rest.partition(".")[2].replace("_", " ") or line.rest for line in found)
