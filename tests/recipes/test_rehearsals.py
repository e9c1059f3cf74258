"""Every recipe of the paper's tables runs for two steps at its true shape: `samix train NAME --dry-run`."""

from dataclasses import replace

import pytest

from samix.commands.dry_run import dry_run
from samix.engine.recipe import Recipe
from samix.recipes.catalogue import Entry, list_entries


def without_schedule(recipe: Recipe) -> Recipe:
    """The recipe without what two steps do not show, such as its length."""
    return replace(recipe, epochs=100, batch_size=256, eval_every=1, save_every=1)


def differing() -> list[Entry]:
    """The recipes of the paper, of those that run alike the first."""
    found: dict[str, Entry] = {}
    for entry in list_entries():
        if entry.cells:
            found.setdefault(repr((without_schedule(entry.recipe), entry.size[1])), entry)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("entry", differing(), ids=lambda entry: entry.name)
def test_value_a_recipe_runs(entry, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    pre_training = entry.recipe.command == "pretrain"
    dry_run(entry.name, entry.recipe, None if pre_training else 2)
    out = capsys.readouterr().out
    assert "hours on this machine" in out and "loss nan" not in out
