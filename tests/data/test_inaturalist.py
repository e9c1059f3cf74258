"""iNaturalist's official JSON files."""

import json

import pytest

from samix.data.datasets import Data, load_data

PLANT, BIRD = "Plantae/7477", "Aves/12"


def write_list(path, files, categories):
    """A list in COCO's manner; picture numbers are not positions."""
    images = [{"id": 100 + k, "file_name": file} for k, (file, _) in enumerate(files)]
    annotations = [{"id": k, "image_id": 100 + k, "category_id": label} for k, (_, label) in enumerate(files)]
    whole = {"images": images, "categories": categories, "annotations": annotations[::-1]}
    path.write_text(json.dumps(whole))


@pytest.fixture(params=[2017, 2018])
def inat(request, write, tmp_path):
    year, folder = request.param, {2017: "train_val_images", 2018: "train_val2018"}[request.param]
    categories = [{"id": 7, "name": "seven"}, {"id": 2, "name": "two"}]
    files = [(f"{folder}/{PLANT}/a.jpg", 7), (f"{folder}/{BIRD}/b.jpg", 2), (f"{folder}/{BIRD}/c.jpg", 2)]
    for number, (file, _) in enumerate(files):
        write(file, 20 + 50 * number, size=(16, 16))
    write_list(tmp_path / f"train{year}.json", files[:2], categories)
    write_list(tmp_path / f"val{year}.json", files[2:], categories)
    return Data(name=f"inat{year}", root=str(tmp_path), size=16), tmp_path, year


def test_value_pictures_labels_and_names(inat):
    data, _, _ = inat
    split = load_data(data)
    assert split.train.classes == split.test.classes == ("two", "seven"), "in the order of their numbers"
    assert (split.train.labels.tolist(), split.test.labels.tolist()) == ([0, 1], [0])
    assert split.train.pictures.float().mean(dim=(1, 2, 3)).tolist() == pytest.approx([70, 20], abs=1)


def test_value_readable_names_have_a_file_of_their_own(inat):
    data, root, _ = inat
    names = [{"id": 2, "name": "Parus major"}, {"id": 7, "name": "Acer"}, {"id": 9, "name": "elsewhere"}]
    (root / "categories.json").write_text(json.dumps(names))
    assert load_data(data).train.classes == ("Parus major", "Acer")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"images": []}', '{"images": [3], "annotations": [4]}'])
def test_error_a_damaged_list_is_named(inat, text):
    data, root, year = inat
    (root / f"val{year}.json").write_text(text)
    with pytest.raises(ValueError, match=f"cannot read the list .*val{year}.json.*Copy it again"):
        load_data(data)
    (root / f"train{year}.json").write_text(text)
    with pytest.raises(ValueError, match=f"train{year}.json.*Copy it again"):
        load_data(data)


def test_error_a_file_elsewhere(inat):
    data, root, year = inat
    write_list(root / f"val{year}.json", [("../x.jpg", 2)], [])
    with pytest.raises(ValueError, match="has '../x.jpg', which leads out of the set's folder"):
        load_data(data)


def test_error_missing_files_are_named(inat):
    data, root, year = inat
    (root / f"val{year}.json").unlink()
    with pytest.raises(
        FileNotFoundError, match=f"val{year}.json is missing. Expected train{year}.json, val{year}.json"
    ):
        load_data(data)
