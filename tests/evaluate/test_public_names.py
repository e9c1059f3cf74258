"""Names that live on the package, also those that are imported when they are first used."""

import pytest

from samix import evaluate


def test_value_every_public_name_is_there():
    from samix.evaluate.linear import linear_probe
    from samix.evaluate.retention import retention_sweep

    assert all(hasattr(evaluate, name) for name in evaluate.__all__)
    assert (evaluate.linear_probe, evaluate.retention_sweep) == (linear_probe, retention_sweep)
    assert callable(evaluate.mixed_accuracy), "the function, not the file of the same name"


def test_invariant_what_is_imported_later_is_public():
    later = {name for names in evaluate.IMPORTED_LATER.values() for name in names}
    assert later < set(evaluate.__all__)


def test_error_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'samix.evaluate' has no attribute 'acuracy'"):
        evaluate.acuracy  # noqa: B018
