"""FGVC-Aircraft's official lists."""

import pytest
import torch

from samix.data.datasets import Data, load_data


@pytest.fixture
def aircraft(write, tmp_path):
    """Two variants, one with a blank in its name; variants.txt is not sorted."""
    root = tmp_path / "fgvc-aircraft-2013b" / "data"
    for number in range(3):
        write(f"{root.relative_to(tmp_path)}/images/000{number}.jpg", 20 + 50 * number, size=(40, 16))
    (root / "variants.txt").write_text("BAE 146-200\n707-320\n")
    (root / "images_variant_trainval.txt").write_text("0000 707-320\n0001 BAE 146-200\n")
    (root / "images_variant_test.txt").write_text("0002 707-320\n")
    return root


@pytest.mark.parametrize("up", [0, 1, 2], ids=["data", "its folder", "above"])
def test_value_pictures_labels_and_names(aircraft, up):
    root = [aircraft, *aircraft.parents][up]
    split = load_data(Data(name="aircraft", root=str(root), size=16))
    assert split.train.classes == split.test.classes == ("BAE 146-200", "707-320")
    assert (split.train.labels.tolist(), split.test.labels.tolist()) == ([1, 0], [1])
    assert isinstance(split.train.pictures, torch.Tensor)
    assert split.train.pictures.shape == (2, 3, 40, 16), "whole, with the strip at the bottom"
    assert split.train.pictures.float().mean(dim=(1, 2, 3)).tolist() == pytest.approx([20, 70], abs=1)


def test_error_a_variant_that_is_not_listed(aircraft):
    (aircraft / "images_variant_test.txt").write_text("0002 747\n")
    with pytest.raises(ValueError, match=r"line 1 of .*_test.txt has '747', which is not in variants.txt"):
        load_data(Data(name="aircraft", root=str(aircraft)))


def test_error_a_number_that_leads_elsewhere(aircraft):
    (aircraft / "images_variant_test.txt").write_text("../../x 707-320\n")
    with pytest.raises(ValueError, match="leads out of the set's folder"):
        load_data(Data(name="aircraft", root=str(aircraft)))


def test_error_missing_pictures_are_named(aircraft):
    (aircraft / "images" / "0001.jpg").unlink()
    with pytest.raises(ValueError, match="cannot read the picture .*images/0001.jpg: .*No such file"):
        load_data(Data(name="aircraft", root=str(aircraft)))
