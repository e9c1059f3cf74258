"""samix recipes: every family with its rows."""

from samix.recipes import RECIPES


def test_value_every_family_and_row_is_listed(call):
    out = call("recipes")
    for name, family in RECIPES.items():
        assert name in out.split()
        assert set(family.rows) <= set(out.split())
    assert "CIFAR-10" in out
