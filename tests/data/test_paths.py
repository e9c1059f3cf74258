"""Many paths in little memory."""

from pathlib import Path

import pytest
import torch

from samix.data.paths import Paths

NAMES = ["a/b.png", Path("/tmp/with blank.jpg"), "é/ü.png", "bad\udcff.png", "a/b.png"]


def test_value_paths_come_back_in_their_order():
    assert list(Paths(NAMES)) == [Path(name) for name in NAMES]
    assert Paths(NAMES)[-2] == Path("bad\udcff.png") and len(Paths([])) == 0


def test_value_some_of_them():
    assert list(Paths(NAMES).pick(torch.tensor([2, 0, 2]))) == [Path(NAMES[i]) for i in (2, 0, 2)]


def test_error_a_position_that_is_not_there():
    with pytest.raises(IndexError):
        Paths(NAMES)[5]
