"""Every recipe of the paper's tables runs for two steps at its true shape: `samix train NAME --dry-run`.

Of recipes that run alike, such as those of 100 and 300 epochs, one is rehearsed.
"""

import pytest

from samix.commands.dry_run import dry_run
from samix.engine.recipe import Recipe, to_dict
from samix.recipes.catalogue import Entry, list_entries
from samix.runs.settings import flatten

ALIKE = ("epochs", "batch_size", "eval_every", "save_every", "data.name", "data.workers", "mixup.alpha")
"""Settings that two steps do not show, beside the numbers of the optimizer."""


def shown(recipe: Recipe) -> str:
    """The settings that two steps show."""
    settings = {name: value for name, value in flatten(to_dict(recipe)) if name not in ALIKE}
    kept = {name: value for name, value in settings.items() if not name.startswith("optimizer.")}
    return repr((kept, recipe.optimizer.name))


def differing() -> list[Entry]:
    """The recipes of the paper, of those that run alike the first."""
    found: dict[str, Entry] = {}
    for entry in list_entries():
        if entry.cells:
            found.setdefault(shown(entry.recipe), entry)
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
