"""The default Mixer, trained: its masks follow lam and are alive."""

from dataclasses import replace

import pytest

from samix.engine.loop import train
from samix.recipes import find_recipe


@pytest.mark.slow
def test_value_a_trained_mixer_follows_lam(tmp_path):
    name, recipe = find_recipe("digits/samix")
    short = replace(recipe, epochs=6, eval_every=6, data=replace(recipe.data, size=16))
    summary = train(short, tmp_path / "run", name=name, quiet=True)
    mask = summary["mask"]
    assert mask["correlation"] >= 0.95
    assert mask["gap"] <= 0.1
    assert mask["deviation"] >= 0.02
    assert summary["top1"] > 90
