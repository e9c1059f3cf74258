"""Every example in a docstring gives what it says.

Examples are found in the source, not in the imported objects: the shape checks of the tests wrap these, and
the standard finder passes over a wrapped function in silence.
"""

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import samix

SOURCE = Path(samix.__file__).resolve().parent
LOSSES = ("samix.losses.", "samix.learned.losses.")
NAMED = {
    "samix.core.mixed.blend",
    "samix.core.pairing.draw_pairing",
    "samix.learned.losses.MaskLoss.beta_at",
    "samix.learned.samix.SAMix.wrap",
    "samix.losses.classification.LabelLoss",
    "samix.mix.dropin.Mix",
}

Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def walk(node: Documented, name: str) -> Iterator[tuple[str, Documented]]:
    """The node and whatever is defined in it that may have a docstring, by their full names."""
    yield name, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from walk(child, f"{name}.{child.name}")


def module_of(path: Path) -> str:
    """samix/losses/codes.py -> samix.losses.codes."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
DEFINED = {
    name: (module, node)
    for module, path in MODULES.items()
    for name, node in walk(ast.parse(path.read_text(encoding="utf-8")), module)
}
WITH_EXAMPLES = [name for name, (_, node) in DEFINED.items() if ">>>" in (ast.get_docstring(node) or "")]


def loss_functions() -> set[str]:
    """The public functions of the modules that hold losses."""
    return {
        name
        for name, (module, node) in DEFINED.items()
        if f"{module}.".startswith(LOSSES)
        and isinstance(node, ast.FunctionDef)
        and name == f"{module}.{node.name}"
        and not node.name.startswith("_")
    }


def test_value_no_example_is_passed_over():
    read = doctest.DocTestParser().get_examples
    found = sum(len(read(ast.get_docstring(node) or "")) for _, node in DEFINED.values())
    lines = [line for path in MODULES.values() for line in path.read_text(encoding="utf-8").splitlines()]
    assert found == len([line for line in lines if ">>> " in line])


def test_value_every_loss_has_an_example():
    assert len(loss_functions()) > 20
    assert not (loss_functions() | NAMED) - set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_value_examples_give_what_they_say(name):
    module, node = DEFINED[name]
    words, names = ast.get_docstring(node), dict(vars(importlib.import_module(module)))
    where = str(MODULES[module]), node.body[0].lineno - 1
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(words, names, name, *where)
    results = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert results.failed == 0, "".join(said)
