"""Views: how a batch of pictures is seen in training and in testing.

A view turns pictures uint8 [3, H, W] into one batch uint8 [B, 3, size, size]; normalisation comes
later, on the training device. Pictures that already share one tensor are augmented as a batch.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2

from samix.core.images import to_bytes, to_pixels
from samix.core.shapes import Images, RawImages, Stats
from samix.data.augment import changes_of
from samix.data.datasets import Data, ViewName

View: TypeAlias = Callable[[Sequence[Tensor] | Tensor], Tensor]


def crop_flip(pictures: RawImages, padding: int = 4) -> RawImages:
    """Reflect-pads, crops back to size at a random place and flips half of the pictures, as a batch."""
    count, _, height, width = pictures.shape
    # Reflected indices instead of a padded copy: position -k shows pixel k.
    rows = torch.arange(height) + torch.randint(-padding, padding + 1, (count, 1))
    columns = torch.arange(width) + torch.randint(-padding, padding + 1, (count, 1))
    columns = torch.where(torch.rand(count, 1) < 0.5, columns.flip(1), columns)
    rows, columns = reflect(rows, height), reflect(columns, width)
    batch = torch.arange(count)[:, None, None, None]
    return pictures[
        batch, torch.arange(3)[None, :, None, None], rows[:, None, :, None], columns[:, None, None, :]
    ]


def reflect(position: Tensor, length: int) -> Tensor:
    """Positions outside [0, length) mirrored at the border pixel."""
    position = position.abs()
    return torch.where(position >= length, 2 * (length - 1) - position, position)


def to_batch(pictures: Sequence[Tensor] | Tensor, size: int) -> RawImages:
    """Pictures as one tensor, resized where they differ from `size`."""
    if isinstance(pictures, Tensor) and pictures.shape[-2:] == (size, size):
        return pictures
    return torch.stack([v2.functional.resize(p, [size, size], antialias=True) for p in pictures])


def per_picture(transform: Callable[[Tensor], Tensor]) -> View:
    """Applies a torchvision transform to every picture on its own."""
    return lambda pictures: torch.stack([transform(picture) for picture in pictures])


def resized_crop_view(data: Data) -> View:
    """Random resized crop and flip, per picture."""
    return per_picture(
        v2.Compose(
            [
                v2.RandomResizedCrop(
                    data.size, (data.min_scale, 1.0), interpolation=InterpolationMode.BICUBIC, antialias=True
                ),
                v2.RandomHorizontalFlip(),
            ]
        )
    )


BUILDERS: dict[ViewName, Callable[[Data], View]] = {
    "crop-flip": lambda data: lambda pictures: crop_flip(to_batch(pictures, data.size)),
    "resized-crop": resized_crop_view,
    "none": lambda data: lambda pictures: to_batch(pictures, data.size),
}


def train_view(data: Data) -> View:
    """The training view that `data.view` names, and behind it the changes that `data` asks for."""
    place, changes = BUILDERS[data.view](data), changes_of(data)

    def view(pictures: Sequence[Tensor] | Tensor) -> Tensor:
        seen = place(pictures)
        for change in changes:
            seen = change(seen)
        return seen

    return view if changes else place


def test_view(data: Data) -> View:
    """Resize of the short side and centre crop, or just the picture at the right size."""
    if data.test_short is None:
        return lambda pictures: to_batch(pictures, data.tested_size)
    return per_picture(
        v2.Compose(
            [
                v2.Resize(data.test_short, interpolation=InterpolationMode.BICUBIC, antialias=True),
                v2.CenterCrop(data.tested_size),
            ]
        )
    )


def normalize(pictures: RawImages, mean: tuple[float, ...], std: tuple[float, ...]) -> Images:
    """uint8 pictures as float images with the dataset's mean and deviation taken out."""
    scale = pictures.new_tensor(std, dtype=torch.float32).view(1, 3, 1, 1) * 255
    shift = pictures.new_tensor(mean, dtype=torch.float32).view(1, 3, 1, 1) * 255
    return (pictures - shift) / scale


def denormalize(images: Images, mean: tuple[float, ...], std: tuple[float, ...]) -> RawImages:
    """The inverse of `normalize`, rounded and clipped to uint8."""
    return to_bytes(to_pixels(images, Stats(mean, std)))


__all__ = ["View", "crop_flip", "denormalize", "normalize", "test_view", "train_view"]
