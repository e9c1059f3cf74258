"""Names of before 0.2: each still leads to what it meant, and says where that is now."""

import importlib
import sys

import pytest

from samix._moved import MODULES, NAMES


def resolve(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"samix.{module}"), name)


@pytest.mark.parametrize("old", MODULES)
def test_value_every_moved_module_is_found(old):
    moved, now = importlib.import_module(f"samix.{old}"), importlib.import_module(f"samix.{MODULES[old]}")
    name = next(name for name in vars(now) if not name.startswith("_") and f"{old}.{name}" not in NAMES)
    with pytest.warns(
        DeprecationWarning, match=rf"samix\.{old}\.{name} is now samix\.{MODULES[old]}\.{name}"
    ):
        assert getattr(moved, name) is getattr(now, name)


@pytest.mark.parametrize("old", NAMES)
def test_value_every_moved_name_is_found(old):
    with pytest.warns(DeprecationWarning, match=f"samix.{old} is now samix.{NAMES[old]}"):
        assert resolve(old) is resolve(NAMES[old])


def test_error_names_that_never_were():
    with pytest.raises(ImportError, match="nonsense"):
        from samix.pairing import nonsense  # noqa: F401
    with pytest.raises(ImportError, match="samix.nothing"):
        importlib.import_module("samix.nothing")


def test_invariant_no_module_shadows_the_standard_library():
    package = importlib.import_module("samix")
    for path in importlib.import_module("pathlib").Path(package.__file__).parent.rglob("*.py"):
        assert path.stem not in sys.stdlib_module_names - {"__main__"} or path.stem.startswith("__"), path
