"""samix recipes: every family with its rows."""

from samix.recipes import RECIPES


def test_value_every_family_and_row_is_listed(call):
    out = call("recipes")
    for name, family in RECIPES.items():
        line = next(line for line in out.splitlines() if name in line.split())
        assert " ".join(family.rows) in line
    assert "CIFAR-10" in out
