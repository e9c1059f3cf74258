"""Boxes of objects in mixed images: kept, cut down to what is seen of them, or dropped.

Boxes are (left, top, right, bottom) in pixels, as torchvision's detectors take them. How much of a box is
seen is the mean of the mask over it: an area where masks are hard (CutMix, ResizeMix), lam in Mixup.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from samix.core.shapes import Index, Mask, Size

Boxes = Float[Tensor, "N 4"]


class Detections(NamedTuple):
    """The objects of one mixed image."""

    boxes: Boxes
    labels: Shaped[Tensor, "N"]
    visible: Float[Tensor, "N"]
    """How much of each box is seen: a weight for its losses, if wanted."""


class Patch(NamedTuple):
    """Where the whole partner, made smaller, is shown in each mixed image; [B] each, in pixels."""

    top: Int[Tensor, "B"]
    height: Int[Tensor, "B"]
    left: Int[Tensor, "B"]
    width: Int[Tensor, "B"]


def mix_boxes(
    boxes: Sequence[Tensor],
    labels: Sequence[Tensor],
    index: Index,
    mask: Mask,
    patch: Patch | None = None,
    least: float = 0.1,
) -> list[Detections]:
    """The objects of every mixed image: of its first image under the mask, of its partner beside it."""
    check_boxes(boxes, labels, len(index))
    size, masks = (mask.shape[2], mask.shape[3]), mask[:, 0].float().expand(len(index), -1, -1)
    found = []
    for image, partner in enumerate(index.tolist()):
        theirs = boxes[partner]
        if patch is not None:
            theirs = shrink_boxes(theirs, size, patch, image)
        own = see_boxes(boxes[image], labels[image], masks[image], least)
        other = see_boxes(theirs, labels[partner], 1 - masks[image], least)
        found.append(Detections(*(torch.cat(both) for both in zip(own, other, strict=True))))
    return found


def see_boxes(
    boxes: Boxes, labels: Shaped[Tensor, "N"], shown: Float[Tensor, "H W"], least: float
) -> Detections:
    """What is seen of boxes where their image is `shown`, without those of which less than `least` is seen.

    A box whose right half is covered ends in the middle:

    >>> shown = torch.cat([torch.ones(4, 3), torch.zeros(4, 3)], dim=1)
    >>> see_boxes(torch.tensor([[1.0, 1.0, 5.0, 3.0]]), torch.tensor([7]), shown, least=0.1)
    Detections(boxes=tensor([[1., 1., 3., 3.]]), labels=tensor([7]), visible=tensor([0.5000]))
    """
    left, top, right, bottom = boxes.unbind(dim=1)
    rows, columns = covered(top, bottom, shown.shape[0]), covered(left, right, shown.shape[1])
    area = ((right - left) * (bottom - top)).clamp(min=torch.finfo(boxes.dtype).tiny)
    visible = ((rows @ shown) * columns).sum(dim=1) / area

    seen = (shown > 0).to(boxes)
    first_row, last_row = bounds(((columns > 0).to(boxes) @ seen.T > 0) & (rows > 0))
    first_column, last_column = bounds(((rows > 0).to(boxes) @ seen > 0) & (columns > 0))
    cut = torch.stack(
        [
            left.maximum(first_column),
            top.maximum(first_row),
            right.minimum(last_column),
            bottom.minimum(last_row),
        ],
        dim=1,
    )
    kept = (visible > 0) & (visible >= least)
    return Detections(cut[kept], labels[kept], visible[kept])


def covered(start: Tensor, end: Tensor, length: int) -> Float[Tensor, "N _"]:
    """How much of each pixel lies inside [start, end)."""
    pixel = torch.arange(length, device=start.device, dtype=start.dtype)[None]
    return (torch.minimum(end[:, None], pixel + 1) - torch.maximum(start[:, None], pixel)).clamp(0, 1)


def bounds(inside: Bool[Tensor, "N _"]) -> tuple[Tensor, Tensor]:
    """The first pixel that is inside, and the one behind the last; any two if none is."""
    return inside.byte().argmax(dim=1), inside.shape[1] - inside.flip(1).byte().argmax(dim=1)


def shrink_boxes(boxes: Boxes, size: Size, patch: Patch, image: int) -> Boxes:
    """Boxes of a partner where this mixed image shows it, shrunk into its patch."""
    scale = torch.stack([patch.width[image] / size[1], patch.height[image] / size[0]]).to(boxes)
    corner = torch.stack([patch.left[image], patch.top[image]]).to(boxes)
    return boxes * scale.repeat(2) + corner.repeat(2)


def check_boxes(boxes: Sequence[Tensor], labels: Sequence[Tensor], count: int) -> None:
    """Refuses what is not one float tensor [N, 4] and one label per box for each image."""
    if len(boxes) < count or len(boxes) != len(labels):
        raise ValueError(f"{count} images need as many boxes and labels; got {len(boxes)} and {len(labels)}.")
    for number, (each, label) in enumerate(zip(boxes, labels, strict=True)):
        if each.ndim != 2 or each.shape[1] != 4 or not each.is_floating_point() or len(label) != len(each):
            raise ValueError(
                f"boxes must be float tensors [N, 4] with N labels; image {number} has {list(each.shape)} of "
                f"{each.dtype} and {len(label)} labels."
            )
        kind = getattr(each, "format", None)
        if kind is not None and kind.value != "XYXY":
            raise ValueError(
                f"boxes must be (left, top, right, bottom), XYXY; those of image {number} are {kind.value}."
            )
