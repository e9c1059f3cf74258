"""Boxes of mixed images, against pixels counted one by one and against what the images show."""

import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

from samix import Mix
from samix.core.boxes import see_boxes
from samix.core.mixed import Mixed
from samix.core.pairing import Pairing

SIZE = (20, 30)


def draw_boxes(count: int, seed: int = 0) -> Tensor:
    """Boxes with whole corners, so that pixels can be counted."""
    draw = torch.Generator().manual_seed(seed)
    left, top = (torch.randint(side - 4, (count,), generator=draw) for side in reversed(SIZE))
    width, height = (torch.randint(2, 12, (count,), generator=draw) for _ in range(2))
    right, bottom = (left + width).clamp(max=SIZE[1]), (top + height).clamp(max=SIZE[0])
    return torch.stack([left, top, right, bottom], dim=1).float()


def loop(box: list[int], shown: Tensor) -> tuple[list[int], float]:
    """The bounds of what is seen of a box, and how much that is, pixel by pixel."""
    left, top, right, bottom = box
    pixels = [(row, column) for row in range(top, bottom) for column in range(left, right)]
    seen = [(row, column) for row, column in pixels if shown[row, column] > 0]
    share = sum(float(shown[row, column]) for row, column in pixels) / len(pixels)
    if not seen:
        return box, share
    rows, columns = [row for row, _ in seen], [column for _, column in seen]
    return [min(columns), min(rows), max(columns) + 1, max(rows) + 1], share


@pytest.mark.parametrize("least", [0.0, 0.3])
@pytest.mark.parametrize("policy", ["cutmix", "fmix", "gridmix", "mixup"])
def test_value_against_a_loop(policy, least):
    x = torch.zeros(2, 3, *SIZE)
    shown = Mix(policy, 2, alpha=5.0).mixed(x, torch.arange(2)).mask[0, 0]
    boxes, labels = draw_boxes(40), torch.arange(40)
    found = see_boxes(boxes, labels, shown, least)
    expected = [(*loop(box.int().tolist(), shown), label) for label, box in enumerate(boxes)]
    expected = [each for each in expected if each[1] > 0 and each[1] >= least]
    assert found.labels.tolist() == [label for _, _, label in expected]
    assert found.boxes.int().tolist() == [box for box, _, _ in expected]
    torch.testing.assert_close(found.visible, torch.tensor([share for _, share, _ in expected]))


def test_value_boxes_between_pixels():
    shown = torch.ones(4, 6)
    shown[:, 3:] = 0
    found = see_boxes(torch.tensor([[0.5, 1.25, 4.5, 2.0]]), torch.tensor([1]), shown, 0.1)
    torch.testing.assert_close(found.boxes, torch.tensor([[0.5, 1.25, 3.0, 2.0]]))
    torch.testing.assert_close(found.visible, torch.tensor([2.5 / 4]))


def test_value_mixup_keeps_the_boxes_of_both_with_their_weights():
    boxes, labels = [draw_boxes(3, 1), draw_boxes(2, 2)], [torch.zeros(3).long(), torch.ones(2).long()]
    mixed = Mix("mixup", 2, alpha=20.0).mixed(torch.zeros(2, 3, *SIZE), torch.arange(2))
    lam = float(mixed.pairing.lam)
    first, second = mixed.boxes(boxes, labels)
    assert torch.equal(first.boxes, torch.cat(boxes)) and first.labels.tolist() == [0, 0, 0, 1, 1]
    torch.testing.assert_close(first.visible, torch.tensor([lam] * 3 + [1 - lam] * 2))
    assert torch.equal(second.boxes, torch.cat(boxes[::-1]))


@pytest.mark.parametrize("policy", ["cutmix", "resizemix"])
def test_value_boxes_frame_what_the_images_show(policy):
    """Each image holds one bright object; the found boxes frame its pixels, to one pixel."""
    boxes = [draw_boxes(1, seed) for seed in range(8)]
    x = torch.zeros(8, 8, *SIZE)  # a channel per object, so that each can be told in any mixture
    for image, box in enumerate(boxes):
        left, top, right, bottom = box[0].int().tolist()
        x[image, image, top:bottom, left:right] = 1
    mixed = Mix(policy, 8, mode="elem").mixed(x, torch.arange(8))
    found = mixed.boxes(boxes, [torch.tensor([image]) for image in range(8)], least=0.0)
    for image, detections in enumerate(found):
        for box, label in zip(detections.boxes, detections.labels.tolist(), strict=True):
            rows, columns = mixed.x[image, label].nonzero().unbind(dim=1)
            if len(rows):
                framed = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
                assert (box - torch.stack(framed)).abs().max() <= 1
        seen = {int(channel) for channel in mixed.x[image].flatten(1).any(dim=1).nonzero()}
        assert seen <= set(detections.labels.tolist())


def test_value_images_without_objects_and_untouched_images():
    boxes, labels = [torch.zeros(0, 4), draw_boxes(2)], [torch.zeros(0).long(), torch.ones(2).long()]
    mixed = Mix("cutmix", 2, prob=0.0).mixed(torch.zeros(2, 3, *SIZE), torch.arange(2))
    first, second = mixed.boxes(boxes, labels)
    assert len(first.boxes) == 0 and torch.equal(second.boxes, boxes[1]) and (second.visible == 1).all()


def test_value_half_a_batch_has_the_boxes_of_the_first_half():
    boxes, labels = [draw_boxes(2, seed) for seed in range(4)], [torch.full((2,), i) for i in range(4)]
    for policy in ("mixup", "resizemix"):
        mixed = Mix(policy, 4, mode="half").mixed(torch.zeros(4, 3, *SIZE), torch.arange(4))
        found = mixed.boxes(boxes, labels, least=0.0)
        assert [set(each.labels.tolist()) for each in found] == [{0, 3}, {1, 2}]


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([torch.zeros(1, 4)], "2 images need as many boxes and labels; got 1 and 2"),
        ([torch.zeros(1, 4), torch.zeros(1, 5)], r"image 1 has \[1, 5\]"),
        ([torch.zeros(1, 4), torch.zeros(1, 4).long()], "image 1 has .* of torch.int64"),
        ([torch.zeros(1, 4), torch.zeros(2, 4)], r"image 1 has \[2, 4\] of torch.float32 and 1 labels"),
        (
            [tv_tensors.BoundingBoxes(torch.zeros(1, 4), format="CXCYWH", canvas_size=SIZE)] * 2,
            r"\(left, top, right, bottom\), XYXY; those of image 0 are CXCYWH",
        ),
    ],
)
def test_error_boxes_of_another_kind(boxes, message):
    mixed = Mix("mixup", 2).mixed(torch.zeros(2, 3, *SIZE), torch.arange(2))
    with pytest.raises(ValueError, match=message):
        mixed.boxes(boxes, [torch.zeros(1), torch.zeros(1)])


def test_error_images_whose_parts_were_moved():
    x = torch.zeros(2, 3, *SIZE)
    moved = Mixed(x, x[:, :1], Pairing(torch.ones(1), torch.tensor([1, 0])), sources=lambda z: (z, z))
    with pytest.raises(ValueError, match="take CutMix, ResizeMix, Mixup"):
        moved.boxes([torch.zeros(0, 4)] * 2, [torch.zeros(0)] * 2)
