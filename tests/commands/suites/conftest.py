"""Runs of a suite as they would be left behind, without training."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from samix.engine.recipe import Recipe, to_dict
from samix.recipes import PRETRAININGS, find_pretraining, find_recipe

NUMBERS = {
    "top1": 50.0,
    "best": 52.0,
    "last": 49.0,
    "ece": 5.0,
    "epochs": 3,
    "commit": "abc",
    "seconds": 10.0,
}


@pytest.fixture
def leave(tmp_path) -> Callable[..., Path]:
    """What a finished run of a row leaves behind, as far as a suite reads it; `changes` are of its recipe."""

    def write(name: str, at: int, summary: dict[str, Any] | None = None, **changes: Any) -> Path:
        folder = tmp_path / "runs" / name / str(at)
        folder.mkdir(parents=True, exist_ok=True)
        find = find_pretraining if name.partition("/")[0] in PRETRAININGS else find_recipe
        recipe: Recipe = replace(find(name)[1], **({"seed": at} | changes))
        (folder / "config.yaml").write_text(yaml.safe_dump(to_dict(recipe)))
        numbers = NUMBERS | {"recipe": name, "seed": at} | (summary or {})
        (folder / "summary.json").write_text(json.dumps(numbers))
        return folder

    return write
