"""What KerasCV's own tests ask of MixUp, CutMix and FourierMix (here FMix), in samix's words.

Differs: channels stand in front; one-hot rows may be whole numbers (KerasCV refuses them); boxes are a list
of tensors. That mixing runs inside a compiled graph is tested in `tests/mix/test_compile.py`.
"""

import pytest
import torch
from torch.nn import functional as F

from samix import Mix

POLICIES = ["mixup", "cutmix", "fmix"]


def ones_and_twos(channels: int = 3, size: int = 4) -> dict[str, torch.Tensor]:
    """A picture of twos, of class 0, and one of ones, of class 1."""
    x = torch.stack([torch.full((channels, size, size), 2.0), torch.ones(channels, size, size)])
    return {"images": x, "labels": torch.eye(2)}


@pytest.mark.parametrize("policy", POLICIES)
def test_shape_dictionaries_keep_their_shapes(policy):
    batch = {"images": torch.ones(2, 3, 64, 64), "labels": F.one_hot(torch.tensor([0, 1]), 10).float()}
    mixed = Mix(policy)(batch)
    assert mixed.keys() == batch.keys()
    assert mixed["images"].shape == (2, 3, 64, 64) and mixed["labels"].shape == (2, 10)


@pytest.mark.parametrize("channels", [1, 3])
def test_value_mixup_leaves_no_value_and_no_label_as_it_was(channels):
    mixed = Mix("mixup", alpha=2.0)(ones_and_twos(channels))
    images, rows = mixed["images"], mixed["labels"]
    assert ((images > 1) & (images < 2)).all() and ((rows > 0) & (rows < 1)).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("policy", ["cutmix", "fmix"])
def test_value_masks_show_pixels_of_both_pictures_and_no_others(policy, channels):
    mixed = Mix(policy, alpha=50.0)(ones_and_twos(channels, size=16))
    for image, row in zip(mixed["images"], mixed["labels"], strict=True):
        assert set(image.unique().tolist()) == {1.0, 2.0}
        assert float(row[0]) == pytest.approx(float((image[0] == 2).float().mean()), abs=1e-6)
        assert float(row.sum()) == pytest.approx(1.0)


def test_shape_mixup_keeps_the_boxes_of_both_pictures():
    boxes = [torch.rand(3, 4).sort(dim=1).values * 64 for _ in range(2)]
    mixed = Mix("mixup", alpha=50.0).mixed(torch.rand(2, 3, 64, 64), torch.arange(2))
    objects = mixed.boxes(boxes, [torch.zeros(3).long(), torch.ones(3).long()], least=0.0)
    for number, found in enumerate(objects):
        torch.testing.assert_close(found.boxes, torch.cat([boxes[number], boxes[1 - number]]))
        assert found.labels.tolist() == [number] * 3 + [1 - number] * 3


@pytest.mark.parametrize("policy", POLICIES)
def test_error_what_keras_refuses(policy):
    batch = ones_and_twos()
    with pytest.raises(ValueError, match="got Tensor alone"):
        Mix(policy)(batch["images"])
    with pytest.raises(ValueError, match="images and labels are not clear from the keys images"):
        Mix(policy)({"images": batch["images"]})
    with pytest.raises(ValueError, match=r"images must be a float tensor \[B, C, H, W\]; got \[3, 4, 4\]"):
        Mix(policy)({"images": batch["images"][0], "labels": batch["labels"][:1]})


@pytest.mark.parametrize("policy", POLICIES)
def test_value_whole_numbers_as_rows_are_rows(policy):
    batch = ones_and_twos()
    rows = Mix(policy)(batch | {"labels": batch["labels"].int()})["labels"]
    assert rows.is_floating_point() and rows.sum(dim=1).tolist() == pytest.approx([1.0, 1.0])
