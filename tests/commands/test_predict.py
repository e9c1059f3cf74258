"""samix predict: files and folders in, CSV out."""

import csv
import io
import shutil

import numpy as np
import pytest
from PIL import Image

from samix.runs.classifier import load_classifier


@pytest.fixture
def pictures(tmp_path):
    """A folder with three pictures, one of them deeper, with names that CSV must quote."""
    random, folder = np.random.default_rng(0), tmp_path / "pictures"
    (folder / "deep").mkdir(parents=True)
    for name in ('a, "b".png', "deep/new\nline.png", "z.jpg"):
        Image.fromarray(random.integers(0, 256, (40, 30, 3), dtype=np.uint8)).save(folder / name)
    return folder


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_value_rows_are_what_the_classifier_says(call, trained, pictures):
    rows = read(call("predict", trained, "pictures", "--top", 3, "--batch", 2))
    assert list(rows[0]) == ["file", "class1", "prob1", "class2", "prob2", "class3", "prob3"]
    assert [row["file"] for row in rows] == [
        'pictures/a, "b".png', "pictures/deep/new\nline.png", "pictures/z.jpg",
    ]  # fmt: skip
    classifier = load_classifier(trained)
    expected = classifier.best(classifier.predict([row["file"] for row in rows]), top=3)
    for row, guesses in zip(rows, expected, strict=True):
        for k, guess in enumerate(guesses, start=1):
            assert row[f"class{k}"] == guess.name
            assert float(row[f"prob{k}"]) == pytest.approx(guess.prob, abs=1e-4)


def test_value_a_file_instead_of_the_screen(call, trained, pictures, tmp_path):
    shown = call("predict", trained, "pictures")
    said = call("predict", trained / "classifier", "pictures", "pictures/z.jpg", "--out", "new/found.csv")
    assert said == "3 pictures -> new/found.csv\n"
    assert (tmp_path / "new" / "found.csv").read_text() == shown


def test_value_more_classes_than_there_are(call, trained, pictures):
    (row,) = read(call("predict", trained, "pictures/z.jpg", "--top", 99))
    assert len(row) == 1 + 2 * 12
    assert sum(float(row[f"prob{k}"]) for k in range(1, 13)) == pytest.approx(1, abs=1e-3)


def test_value_what_cannot_be_read_is_skipped_and_counted_once(call, trained, pictures):
    (pictures / "broken.png").write_text("no picture")
    (pictures / "deep" / "cut.jpg").write_bytes((pictures / "z.jpg").read_bytes()[:300])
    with pytest.warns(UserWarning, match=r"skipped 2 of 5 files .* cannot read the picture") as caught:
        rows = read(call("predict", trained, "pictures", "--batch", 1))
    assert len(rows) == 3 and len(caught) == 1


def test_error_nothing_can_be_read(fail, trained, tmp_path):
    (tmp_path / "a.png").write_text("no picture")
    assert "none of the 1 files can be read. The first: cannot read the picture a.png" in fail(
        "predict", trained, "a.png"
    )


def test_error_no_pictures(fail, trained, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no picture in empty or below (.bmp" in fail("predict", trained, "empty")
    assert "nowhere does not exist" in fail("predict", trained, "nowhere")


def test_error_no_classifier(fail, trained, pictures, tmp_path):
    shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("classifier"))
    assert "run has no classifier/model.safetensors" in fail("predict", "run", "pictures")
    assert "elsewhere is not a run folder" in fail("predict", "elsewhere", "pictures")


@pytest.mark.parametrize("option", ["--top", "--batch"])
def test_error_numbers_below_one(option, fail, trained, pictures):
    assert f"{option} must be at least 1, got 0" in fail("predict", trained, "pictures", option, 0)
