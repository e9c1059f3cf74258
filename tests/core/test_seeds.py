"""Random streams as functions of seed and step."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.seeds import fold, seeded


def test_value_fold_is_the_same_on_every_machine():
    assert fold(0) == 4761921975702974394
    assert fold(3, "step", 7, 1) == 6158535172100528384


@given(st.integers(0, 2**31), st.integers(0, 10**6), st.integers(0, 63))
def test_invariant_fold_fits_a_generator_and_depends_on_every_key(seed, step, rank):
    value = fold(seed, "step", step, rank)
    assert 0 <= value < 2**63
    torch.Generator().manual_seed(value)
    others = {fold(seed + 1, "step", step, rank), fold(seed, "view", step, rank), fold(seed, "step", step)}
    others |= {fold(seed, "step", step + 1, rank), fold(seed, "step", step, rank + 1)}
    assert value not in others


def test_value_fold_keeps_keys_apart():
    assert fold(1, 23) != fold(12, 3)


def test_value_seeded_repeats_and_leaves_the_caller_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(11):
        first = torch.rand(3)
    with seeded(11):
        again = torch.rand(3)
    assert torch.equal(first, again)
    assert torch.equal(torch.rand(3), expected)


def test_value_seeded_restores_after_an_error():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with pytest.raises(KeyError), seeded(11):
        torch.rand(3)
        raise KeyError
    assert torch.equal(torch.rand(3), expected)
