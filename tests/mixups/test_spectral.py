"""Spectral residual saliency, against loops and torchvision."""

import cmath
import math

import pytest
import torch
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as vision

from samix.mixups.spectral import blur, spectral_residual


def pictures(size: tuple[int, int], count: int = 2) -> torch.Tensor:
    return torch.rand(count, 3, *size, generator=torch.Generator().manual_seed(3))


def slow(picture: torch.Tensor) -> torch.Tensor:
    """Sums written out, frequency by frequency and pixel by pixel, before the blur."""
    red, green, blue = picture.double()
    grey = (0.2989 * red + 0.587 * green + 0.114 * blue).tolist()
    height, width = len(grey), len(grey[0])
    places = [(y, x) for y in range(height) for x in range(width)]
    wave = {
        (u, v, y, x): cmath.exp(2j * math.pi * (u * y / height + v * x / width))
        for u, v in places
        for y, x in places
    }
    spectrum = {(u, v): sum(grey[y][x] / wave[u, v, y, x] for y, x in places) for u, v in places}
    size = {place: math.sqrt(abs(value) ** 2 + 1e-10) for place, value in spectrum.items()}
    found = torch.zeros(height, width)
    weights = {}
    for u, v in places:
        near = [
            math.log(size[min(max(u + down, 0), height - 1), min(max(v + right, 0), width - 1)])
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
        ]
        weights[u, v] = math.exp(math.log(size[u, v]) - sum(near) / 9) * spectrum[u, v] / size[u, v]
    for y, x in places:
        total = sum(weights[u, v] * wave[u, v, y, x] for u, v in places)
        found[y, x] = abs(total) / (height * width)
    return found


def test_value_against_a_loop():
    x = pictures((5, 6), count=1)
    expected = blur(slow(x[0])[None])
    torch.testing.assert_close(spectral_residual(x), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [(8, 8), (12, 20), (32, 32)])
def test_value_the_blur_is_torchvisions(size):
    planes = pictures(size)[:, 0]
    torch.testing.assert_close(blur(planes), vision.gaussian_blur(planes, [7, 7], [3.0, 3.0]))


def test_value_large_pictures_are_looked_at_in_128_pixels():
    x = pictures((130, 200), count=1)
    small = v2.Resize((128, 128), antialias=True)(x)
    expected = v2.Resize((130, 200), antialias=True)(spectral_residual(small)[None])[0]
    torch.testing.assert_close(spectral_residual(x), expected, rtol=1e-2, atol=1e-4)


def test_value_finds_what_stands_out():
    grey = 0.5 + 0.01 * torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    grey[..., 20:24, 6:10] = 1.0
    row, column = divmod(int(spectral_residual(grey)[0].argmax()), 32)
    assert 18 <= row <= 25 and 4 <= column <= 11


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [(2, 3), (8, 8), (12, 20)])
def test_shape_float32_of_any_size(size, dtype):
    found = spectral_residual(pictures(size).to(dtype))
    assert found.shape == (2, *size) and found.dtype == torch.float32
    assert found.isfinite().all() and found.min() >= 0


def test_value_flat_pictures_are_flat():
    for shade in (0.0, 0.5, 1.0):
        found = spectral_residual(torch.full((1, 3, 16, 16), shade))
        torch.testing.assert_close(found, found.mean().expand_as(found))
