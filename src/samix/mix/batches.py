"""The ways in which training loops hold a batch: images and labels, a list, a tuple, a dictionary.

`unpack` finds images and labels in whatever `Mix` is called with, and remembers how to put others in their
place; everything else in a list or a dictionary stays as it is.
"""

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

IMAGE_KEYS = ("image", "images", "img", "x", "input", "inputs", "pixel_values", "video", "data")
"""Names by which images are recognised in a dictionary."""
LABEL_KEYS = ("label", "labels", "y", "target", "targets", "class", "gt_label")
"""Names by which labels are recognised."""
MOVED_WITH_PIXELS = ("Mask", "BoundingBoxes", "KeyPoints")
"""Types of torchvision whose values would have to be mixed along."""


class Batch(NamedTuple):
    """Images, labels, and how both are packed."""

    x: Any
    y: Any
    pack: Callable[[Any, Any], Any]
    """(images, labels) -> a batch of the kind that was given."""


def unpack(x: Any, y: Any, keys: Sequence[str] | None = None) -> Batch:
    """The batch of a call `mix(x, y)` or, if y is None, `mix(packed)`; `keys` name images and labels.

    >>> x, y, pack = unpack({"image": 1, "label": 2, "id": 3}, None)
    >>> x, y, pack(10, 20)
    (1, 2, {'image': 10, 'label': 20, 'id': 3})
    """
    if y is not None:
        return Batch(x, y, lambda images, labels: (images, labels))
    if isinstance(x, Mapping):
        return unpack_mapping(x, tuple(keys) if keys else recognise(x))
    if isinstance(x, tuple | list) and len(x) >= 2:
        check_rest(x[2:])
        return Batch(x[0], x[1], lambda images, labels: rebuild(x, [images, labels, *x[2:]]))
    raise ValueError(
        f"call mix(x, y), mix([x, y]) or mix({{'image': x, 'label': y}}); got {type(x).__name__} alone."
    )


def unpack_mapping(batch: Mapping[str, Any], keys: tuple[str, ...]) -> Batch:
    """The values of the first key, and of the others: one, or a dictionary of several heads."""
    missing = [key for key in keys if key not in batch]
    if missing:
        raise ValueError(f"the batch has no {missing[0]!r}: its keys are {', '.join(map(str, batch))}.")
    image, *labels = keys
    check_rest([value for key, value in batch.items() if key not in keys])

    def pack(images: Any, mixed: Any) -> Any:
        packed: Any = copy.copy(batch)
        packed[image] = images
        for key in labels:
            packed[key] = mixed if len(labels) == 1 else mixed[key]
        return packed

    y = batch[labels[0]] if len(labels) == 1 else {key: batch[key] for key in labels}
    return Batch(batch[image], y, pack)


def recognise(batch: Mapping[str, Any]) -> tuple[str, str]:
    """The keys of images and labels, if exactly one of each has a usual name, in capitals or not."""
    found = [[key for key in batch if str(key).lower() in names] for names in (IMAGE_KEYS, LABEL_KEYS)]
    if [len(each) for each in found] != [1, 1]:
        raise ValueError(
            f"images and labels are not clear from the keys {', '.join(map(str, batch))}: name them, "
            "Mix(..., keys=('image', 'label'))."
        )
    return found[0][0], found[1][0]


def rebuild(like: Any, parts: Sequence[Any]) -> Any:
    """A list, tuple or named tuple of the same kind with other parts."""
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


def check_rest(rest: Sequence[Any]) -> None:
    """Refuses masks, boxes and points of torchvision, which would no longer fit the mixed images."""
    for value in rest:
        name = type(value).__name__
        if is_torchvision(value) and name in MOVED_WITH_PIXELS:
            raise ValueError(
                f"Mix mixes images and labels, and this batch holds {name} as well. Call "
                "mixed = mix.mixed(x, y), then mixed.dense(masks) or mixed.boxes(boxes, labels)."
            )


def check_pictures(x: object) -> None:
    """Refuses masks, boxes and points of torchvision where images belong: their values are no colours."""
    name = type(x).__name__
    if is_torchvision(x) and name in MOVED_WITH_PIXELS:
        raise ValueError(f"images must be a float tensor [B, C, H, W] or a tv_tensors.Image; got {name}.")


def is_torchvision(value: object) -> bool:
    """Whether the value is a tensor with a type of torchvision's own; torchvision is not imported for it."""
    types = sys.modules.get("torchvision.tv_tensors")
    return types is not None and isinstance(value, types.TVTensor)


def plain_tensor(x: Tensor) -> Tensor:
    """The tensor without torchvision's type, which only some operations keep."""
    return x.as_subclass(Tensor) if type(x) is not Tensor and is_torchvision(x) else x


def like_given(values: Tensor, given: Tensor) -> Tensor:
    """The values with torchvision's type that was given: an `Image` or a `Video` stays what it was."""
    return sys.modules["torchvision.tv_tensors"].wrap(values, like=given)
