"""samix recipes: families, filtered rows, one explained, all as JSON."""

import json

import pytest

from samix.commands import recipes
from samix.commands.pace import pace_file
from samix.recipes import RECIPES


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_value_every_family_and_row_is_listed(call):
    out = call("recipes")
    for name, family in RECIPES.items():
        assert name in out.split()
        assert set(family.rows) <= set(out.split())
    assert "CIFAR-10" in out


def test_value_json_has_an_object_per_number(call):
    found = json.loads(call("recipes", "--json"))
    assert all(
        {"name", "table", "row", "column", "paper", "command", "dataset", "epochs"} <= row.keys()
        for row in found
    )
    numbers = {(row["table"], str(row["row"]), row["column"]): row for row in found if row["table"]}
    row = numbers["tab:sl_IN_torch", "SAMix^P", "PyTorch 300ep / R-101"]
    assert (row["name"], row["paper"]) == ("imagenet-r101-300/samix-p", 81.1)
    assert numbers["tab:stl_ssl", "['MoCo.V2', 'SAMix-I']", "R18 / 400ep"]["name"].startswith(
        "stl10-r18-ssl/"
    )
    assert {row["name"] for row in found} >= {"demo/samix", "ssl-demo/moco-v2"}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--table", "sl_inat_place", "--method", "samix-p", "--encoder", "resnext101"),
         {"inat2017-rx101/samix-p", "inat2018-rx101/samix-p"}),
        (("--dataset", "aircraft", "--method", "plain"), {"aircraft-r18/plain", "aircraft-rx50/plain"}),
        (("--table", "tab:stl_ssl", "--method", "swav"),
         {f"stl10-{net}-ssl{length}/swav" for net in ("r18", "r50") for length in ("", "-800")}),
        (("demo",), {f"demo/{row}" for row in RECIPES["demo"].rows}),
    ],
)  # fmt: skip
def test_value_filters_choose(call, words, names):
    assert {row["name"] for row in json.loads(call("recipes", *words, "--json"))} == names


def test_value_a_table_shows_the_papers_numbers_and_hours_here(call):
    pace_file().parent.mkdir()
    pace_file().write_text(json.dumps({"imagenet-r18/samix": 0.36, "imagenet-r18/plain": "fast"}))
    out = call("recipes", "imagenet-r18")
    line = next(line for line in out.splitlines() if "imagenet-r18/samix " in line)
    assert "70.85" in line and "12,812" in line  # .36 s for each of 1,281,167 pictures, 100 times
    assert out.count("12,812") == 1


def test_value_one_recipe_is_explained(call):
    out = call("recipes", "imagenet-r50/samix")
    assert "78.11 % (tab:sl_IN_torch, SAMix, PyTorch 100ep / R-50)" in out
    assert "1,281,167 pictures of 1,000 classes, 224 px" in out
    where = out.index("mixup.eta = 0.1\n")
    assert "official a weight that has no effect" in out[where : where + 400]
    assert "samix train imagenet-r50/samix --dry-run" in out


def test_value_a_recipe_without_the_paper_is_explained_too(call):
    out = call("recipes", "demo/samix")
    assert "paper " not in out and "network   small-resnet, weights: random" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--table", "sl_IN_tortch"), "unknown table 'sl_IN_tortch'. Did you mean 'tab:sl_IN_torch'?"),
        (("--dataset", "cub"), "unknown dataset 'cub'. Did you mean 'cub200'?"),
        (("dmeo",), "unknown recipe 'dmeo'. Did you mean 'demo'?"),
        (("demo/samux",), "unknown row of demo 'samux'. Did you mean 'samix'?"),
        (("demo/samix", "--method", "samix"), "a recipe's name and filters were both given; leave one out."),
    ],
)
def test_error_words_that_no_recipe_has(words, message):
    with pytest.raises(ValueError) as error:
        recipes.run(list(words))
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["[1]", "{", '{"demo/samix": -1, "demo/plain": NaN}'])
def test_value_a_cache_that_is_none_is_no_error(call, text):
    pace_file().parent.mkdir()
    pace_file().write_text(text)
    assert "hours on this machine" not in call("recipes", "cifar10-small/samix")
