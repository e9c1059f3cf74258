"""Which runs a suite has, and what it is compared with."""

from pathlib import Path

import pytest

from samix.commands.suites.plan import baselines_of, plan_suite
from samix.recipes import RECIPES


def test_value_all_rows_seed_by_seed():
    runs = plan_suite("demo", None, (0, 1), Path("runs"))
    rows = list(RECIPES["demo"].rows)
    assert [(run.row, run.seed) for run in runs] == [(row, seed) for seed in (0, 1) for row in rows]
    assert runs[0].folder == Path("runs/demo") / rows[0] / "0"
    assert runs[0].words == ("train", f"demo/{rows[0]}", "--seed", "0")
    assert runs[0].recipe == RECIPES["demo"].rows[rows[0]]


def test_value_rows_fields_and_a_folder_of_ones_own():
    words = ["--epochs", "5"]
    (run,) = plan_suite("ssl-demo", ["moco-v2+mixup"] * 2, [3], Path("mine"), words)
    assert run.recipe.epochs == 5 and run.recipe.seed == run.seed == 3
    folder = str(Path("mine/ssl-demo/moco-v2+mixup/3"))
    assert run.words == ("pretrain", "ssl-demo/moco-v2+mixup", "--seed", "3", *words, "--out", folder)


@pytest.mark.parametrize(
    ("family", "rows", "fields", "said"),
    [
        ("dmo", None, [], "unknown suite 'dmo'. Did you mean 'demo'?"),
        ("demo/samix", None, [], "Rows go behind --rows: samix bench demo"),
        ("demo", ["cutmx"], [], "unknown row of demo 'cutmx'. Did you mean 'cutmix'?"),
        ("demo", ["samix", "plain"], ["--mixup.eta", "0.1"], "demo/plain: unknown field"),
    ],
)
def test_error_words_that_name_no_suite(family, rows, fields, said):
    with pytest.raises(ValueError) as error:
        plan_suite(family, rows, [0], Path("runs"), fields)
    assert said in str(error.value)


def test_value_baselines():
    assert baselines_of(["samix", "plain"]) == {"samix": "plain", "plain": "plain"}
    assert baselines_of(["samix", "mixup"], "mixup") == {"samix": "mixup", "mixup": "mixup"}
    assert baselines_of(["samix", "mixup"]) == {"samix": "samix", "mixup": "mixup"}
    assert baselines_of(["moco-v2+cutmix", "byol", "byol+mixup"]) == {"byol": "byol", "byol+mixup": "byol"}
    with pytest.raises(ValueError, match="--baseline: unknown row 'plane'. Did you mean 'plain'"):
        baselines_of(["plain", "samix"], "plane")
