"""AugMix's operations against Pillow, which the original calls, one 8-bit picture at a time."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch.nn import functional as F

from samix.mixups.augmix.operations import (
    OPERATIONS,
    autocontrast,
    equalise,
    posterise,
    rotate,
    shear_x,
    shear_y,
    solarise,
    translate_x,
    translate_y,
    warp,
)

SIZES = [(8, 8), (32, 32), (20, 37), (61, 24)]
EXACT = (equalise, posterise, solarise, translate_x, translate_y)
BILINEAR = Image.Resampling.BILINEAR


def affine(picture: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, resample=BILINEAR)


PILLOW = {
    autocontrast: lambda picture, level: ImageOps.autocontrast(picture),
    equalise: lambda picture, level: ImageOps.equalize(picture),
    posterise: lambda picture, level: ImageOps.posterize(picture, 4 - int(0.4 * abs(level))),
    rotate: lambda picture, level: picture.rotate(int(3 * level), resample=BILINEAR),
    solarise: lambda picture, level: ImageOps.solarize(picture, 256 - int(25.6 * abs(level))),
    shear_x: lambda picture, level: affine(picture, (1, 0.03 * level, 0, 0, 1, 0)),
    shear_y: lambda picture, level: affine(picture, (1, 0, 0, 0.03 * level, 1, 0)),
    translate_x: lambda picture, level: affine(picture, (1, 0, int(level * picture.size[0] / 30), 0, 1, 0)),
    translate_y: lambda picture, level: affine(picture, (1, 0, 0, 0, 1, int(level * picture.size[1] / 30))),
}


def by_pillow(operation, images: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
    """One picture after the other."""
    results = []
    for image, strength in zip(images, level.tolist(), strict=True):
        picture = PILLOW[operation](Image.fromarray(image.permute(1, 2, 0).numpy()), strength)
        results.append(torch.from_numpy(np.array(picture)).permute(2, 0, 1))
    return torch.stack(results)


def pictures(size: tuple[int, int], count: int = 24) -> torch.Tensor:
    """Smooth pictures of low contrast, then noise, then a few with one or two shades."""
    smooth = F.interpolate(torch.rand(count, 3, 4, 4), size, mode="bicubic") * 120 + 60
    noise = torch.rand(count, 3, *size) * 256
    flat = torch.full((2, 3, *size), 77.0)
    flat[1, :, ::2] = 180
    return torch.cat([smooth, noise, flat]).clamp(0, 255).to(torch.uint8)


def levels(count: int) -> torch.Tensor:
    """Signed levels over the whole range that any severity allows."""
    return (0.1 + 9.8 * torch.rand(count)) * (1 - 2 * torch.randint(2, (count,)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_value_against_pillow(operation, size):
    """Bit for bit, or to one shade of 255 in a few pixels of a hundred."""
    images = pictures(size)
    level = levels(len(images))
    gap = (operation(images, level).int() - by_pillow(operation, images, level).int()).abs()
    assert gap.max() <= (0 if operation in EXACT else 1)
    assert (gap > 0).float().mean() < 0.05


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_value_each_picture_has_its_own_level(operation):
    images = pictures((16, 24))
    level = levels(len(images))
    together = operation(images, level)
    for i in range(0, len(images), 7):
        assert torch.equal(together[i : i + 1], operation(images[i : i + 1], level[i : i + 1]))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_invariant_shape_dtype_and_nothing_in_place(operation):
    images = pictures((9, 14))
    copy = images.clone()
    changed = operation(images, levels(len(images)))
    assert changed.shape == images.shape and changed.dtype == torch.uint8
    assert torch.equal(images, copy) and images._version == 0


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_value_every_operation_does_something(operation):
    images = pictures((32, 32))
    changed = operation(images, torch.full((len(images),), 3.0))
    assert not torch.equal(changed, images)


@pytest.mark.parametrize("operation", [autocontrast, equalise])
def test_value_one_shade_stays(operation):
    images = torch.full((2, 3, 32, 32), 93, dtype=torch.uint8)
    assert torch.equal(operation(images, torch.ones(2)), images)


def test_value_autocontrast_fills_the_range_of_each_channel():
    images = pictures((32, 32))[:40]
    stretched = autocontrast(images, torch.ones(40))
    assert (stretched.amin(dim=(2, 3)) == 0).all() and (stretched.amax(dim=(2, 3)) == 255).all()


@pytest.mark.parametrize(("operation", "mirror"), [(translate_x, 3), (translate_y, 2), (rotate, 3)])
def test_value_the_opposite_sign_moves_the_mirrored_picture(operation, mirror):
    images = pictures((16, 21))
    level = levels(len(images))
    mirrored = operation(images.flip(mirror), -level).flip(mirror)
    assert (operation(images, level).int() - mirrored.int()).abs().max() <= 1
    assert not torch.equal(operation(images, level), operation(images, -level))


@pytest.mark.parametrize("operation", [autocontrast, equalise, posterise, solarise])
def test_value_shades_do_not_depend_on_the_sign(operation):
    images = pictures((16, 16))
    level = levels(len(images))
    assert torch.equal(operation(images, level), operation(images, -level))


def test_value_the_weakest_levels_leave_the_picture():
    """floor(3 l), floor(25.6 l) and floor(l side / 30) are 0 or next to it."""
    images, weakest = pictures((16, 16)), torch.full((50,), 0.1)
    for operation in (rotate, translate_x, translate_y):
        assert torch.equal(operation(images, weakest), images)
    assert torch.equal(solarise(images, weakest), torch.where(images < 254, images, 255 - images))


def test_value_posterise_keeps_at_least_one_bit():
    shades = posterise(pictures((16, 16)), torch.full((50,), 10.0)).unique().tolist()
    assert shades == [0, 128]


def test_value_outside_is_black_and_borders_do_not_fade():
    white = torch.full((1, 3, 8, 12), 255, dtype=torch.uint8)
    moved = warp(white, torch.tensor([[1.0, 0, 2.5, 0, 1, 0]]))
    assert (moved[..., :9] == 255).all()  # column 9 reads at 9.5 + 2.5 = 12, just outside
    assert (moved[..., 9:] == 0).all()


@pytest.mark.parametrize("size", [(8, 8), (500, 333), (7, 1100)])
def test_value_the_identity_is_exact(size):
    """Float32 coordinates of large pictures must not lose a shade when values are truncated."""
    images = torch.randint(256, (1, 3, *size)).to(torch.uint8)
    assert torch.equal(warp(images, torch.tensor([[1.0, 0, 0, 0, 1, 0]])), images)


def test_value_no_operation_of_the_corruption_sets():
    assert set(OPERATIONS) == set(PILLOW) and len(OPERATIONS) == 9
