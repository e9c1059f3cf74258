"""What a method would supply to a policy, made up from the images alone."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.mixups import Hints


def make_hints(x: Tensor) -> Hints:
    """Hints of the right shapes that differ between images and depend on nothing random."""
    pixels = x.detach().float().clamp(0, 1)
    grey = pixels.mean(dim=1)
    saliency = (grey - grey.mean(dim=(1, 2), keepdim=True)).abs() + 1e-3
    attention = F.adaptive_avg_pool2d(saliency, 4)
    attention = attention / attention.sum(dim=(1, 2), keepdim=True)
    maps = F.adaptive_avg_pool2d(pixels, 4)

    def teacher(images: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(images.float(), 2).flatten(1).repeat(1, 3)[:, :5] * 10

    return Hints(
        pixels.to(x.dtype),
        saliency,
        attention,
        maps,
        teacher,
        activation=maps[:, 0],
        labels=torch.arange(len(x)),
    )


@pytest.fixture
def hints_for() -> Callable[[Tensor], Hints]:
    return make_hints
