"""samix as its users import it: without the shape checks of the tests, which torch.compile cannot trace."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

STAYS = "samix._torchvision"
"""Declares operators to torch, which can be done only once."""


def take_samix() -> dict[str, ModuleType]:
    """Takes samix out of Python's imported modules."""
    names = [name for name in sys.modules if name.split(".")[0] == "samix" and name != STAYS]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture(scope="module")
def untyped() -> Iterator[ModuleType]:
    """The package samix, imported a second time without jaxtyping's import hook; nothing compiled yet."""
    if torch.__version__.startswith("2.5."):
        pytest.skip("torch 2.5 cannot put methods of named tuples into one graph")
    finders, checked = sys.meta_path[:], take_samix()
    sys.meta_path[:] = [each for each in finders if type(each).__module__.split(".")[0] != "jaxtyping"]
    torch._dynamo.reset()
    yield importlib.import_module("samix")
    take_samix()
    sys.meta_path[:] = finders
    sys.modules.update(checked)
