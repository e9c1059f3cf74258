import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="session")
def random_pictures():
    """A maker of 8-bit pictures: `random_pictures(count, height, width)`."""

    def make(count: int, height: int, width: int) -> Tensor:
        return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8)

    return make
