"""The list of all recipes: every number of the paper but detection's has one, under its own name."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from samix.recipes.catalogue import MISSING, find_entry, list_entries, read_field
from samix.recipes.said import TABLES

ROOT = Path(__file__).resolve().parents[2]
SPEC = Path(os.environ.get("SAMIX_SPEC", ROOT.parent / "shared" / "spec")) / "TABLES.json"
ENTRIES = list(list_entries())


@pytest.mark.skipif(not SPEC.is_file(), reason="the paper's tables are not here")
def test_value_every_number_of_the_paper_but_detections_is_a_recipes():
    printed = {
        (table["label"], tuple([row["row"]] if isinstance(row["row"], str) else row["row"]), column): number
        for table in json.loads(SPEC.read_text())["tables"]
        for row in table["rows"]
        for column, number in row["values"].items()
        if number is not None and table["label"] != "tab:detection"
    }
    ours = {(c.table, c.row, c.column): c.number for entry in ENTRIES for c in entry.cells}
    assert ours == printed and len(printed) == 469


def test_invariant_no_number_has_two_recipes_and_no_recipe_two_names():
    assert max(Counter(cell[:3] for entry in ENTRIES for cell in entry.cells).values()) == 1
    assert max(Counter(entry.name for entry in ENTRIES).values()) == 1


def test_invariant_every_recipe_is_found_by_its_name():
    for entry in ENTRIES:
        assert find_entry(entry.name) == entry
        assert entry.command.startswith(f"samix {entry.recipe.command} {entry.name}")


def test_invariant_recipes_of_the_paper_know_their_pictures_and_sources():
    for entry in ENTRIES:
        if entry.cells:
            assert None not in entry.size and entry.said()
            assert all(read_field(entry.recipe, said.field) is not MISSING for said in entry.said())
    assert {cell.table for entry in ENTRIES for cell in entry.cells} == set(TABLES)


def test_value_a_pre_training_is_judged_by_a_linear_probe():
    entry = find_entry("imagenet-r50-ssl/moco-v2+samix-c")
    assert entry.command.endswith(" && samix linear runs/imagenet-r50-ssl/moco-v2+samix-c/0")
    assert "--data.root IMAGENET" in entry.command and entry.data == "imagenet"


def test_value_a_subset_has_its_own_size():
    assert find_entry("cifar10-small/samix").size == (250, 10)
    assert find_entry("demo/samix").size[1] is None


def test_value_fields_are_read_by_dotted_names():
    recipe = find_entry("imagenet-r50/samix").recipe
    assert read_field(recipe, "mixup.mask.beta") == 0.1
    assert read_field(recipe, "mixup.clusters.count") is MISSING
    assert read_field(recipe, "epochs.more") is MISSING


def test_error_an_unknown_family_is_suggested():
    with pytest.raises(ValueError, match=r"unknown recipe 'imagnet-r50'. Did you mean 'imagenet-r50'\?"):
        find_entry("imagnet-r50/samix")
