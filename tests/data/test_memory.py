"""Pictures read into memory: in order, of one or several sizes, and never twice."""

import threading
import weakref

import pytest
import torch
from torch import Tensor

from samix.data.memory import read_all, spread_positions


def numbered(position: int, side: int = 4) -> Tensor:
    """A picture whose pixels tell its position."""
    return torch.full((3, side, side), position % 256, dtype=torch.uint8)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 300])
def test_value_pictures_of_one_size_become_one_tensor_in_order(count):
    whole = read_all(numbered, count)
    assert isinstance(whole, Tensor) and whole.shape == (count, 3, 4, 4) and whole.dtype == torch.uint8
    assert whole[:, 0, 0, 0].tolist() == [i % 256 for i in range(count)]


@pytest.mark.parametrize("other", [{0}, {37}, {99}, {*range(1, 100, 2)}])
def test_value_pictures_of_several_sizes_become_a_list_in_order(other):
    pictures = read_all(lambda i: numbered(i, 5 if i in other else 4), 100)
    assert isinstance(pictures, list)
    assert [int(picture[0, 0, 0]) for picture in pictures] == list(range(100))
    assert {i for i, picture in enumerate(pictures) if picture.shape[1] == 5} == other


def test_value_no_pictures():
    assert read_all(numbered, 0) == []


def test_invariant_pictures_are_not_held_twice():
    alive: weakref.WeakSet[Tensor] = weakref.WeakSet()
    lock, most = threading.Lock(), 0

    def read(position: int) -> Tensor:
        nonlocal most
        picture = numbered(position)
        with lock:
            alive.add(picture)
            most = max(most, len(alive))
        return picture

    assert len(read_all(read, 2000)) == 2000
    assert most < 200  # one or two per thread


def test_error_of_a_picture_is_passed_on():
    def read(position: int) -> Tensor:
        if position == 77:
            raise ValueError("picture 77 is torn")
        return numbered(position)

    with pytest.raises(ValueError, match="picture 77 is torn"):
        read_all(read, 200)


@pytest.mark.parametrize("count", [0, 1, 3, 16, 31, 32, 100_000])
def test_invariant_positions_are_few_and_spread(count):
    positions = spread_positions(count, 16)
    assert min(count, 16) <= len(positions) < 32
    assert all(0 <= position < count for position in positions)
    assert count < 2 or positions[-1] >= count // 2
