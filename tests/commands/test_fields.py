"""Recipes as words and as YAML: there and back, and refused by name."""

from dataclasses import replace

import pytest
import yaml

from samix.commands.fields import from_yaml, override
from samix.engine.classification import POLICIES, Recipe
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.training import to_dict
from samix.learned.mixer import MixerConfig
from samix.learned.samix import LearnedMixup
from samix.mixups import CutMix
from samix.recipes import RECIPES

ROWS = {f"{family}/{row}": recipe for family, f in RECIPES.items() for row, recipe in f.rows.items()}


@pytest.fixture
def file(tmp_path):
    """Writes a text to a YAML file."""

    def write(text: str):
        path = tmp_path / "recipe.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("name", ROWS)
def test_invariant_every_recipe_survives_its_file(name, file):
    assert from_yaml(file(yaml.safe_dump(to_dict(ROWS[name])))) == ROWS[name]


@pytest.mark.parametrize("name", POLICIES)
def test_value_no_words_change_nothing(name):
    base = Recipe(mixup=POLICIES[name]())
    assert override(base, []) == base


def test_value_words_change_exactly_their_fields():
    base = Recipe(mixup=LearnedMixup())
    words = ["--optimizer.lr", "0.3", "--mixup.mixer.gamma=0.5", "--epochs", "7", "--optimizer.clip", "null"]
    words += ["--machine.compile", "true", "--machine.threads", "2", "--optimizer.min_lr", "1e-3"]
    expected = replace(
        base,
        epochs=7,
        mixup=LearnedMixup(mixer=MixerConfig(gamma=0.5)),
        optimizer=Optimizer(lr=0.3, min_lr=1e-3),
        machine=Machine(compile=True, threads=2),
    )
    assert override(base, words) == expected


def test_value_the_base_values_of_a_row_are_kept():
    base = ROWS["imagenet-r50/cutmix"]
    changed = override(base, ["--epochs", "3"])
    assert changed == replace(base, epochs=3)
    assert isinstance(changed.mixup, CutMix)


def test_value_a_short_file_takes_defaults(file):
    assert from_yaml(file("epochs: 3\nmixup: {name: cutmix, alpha: 0.2}\n")) == Recipe(
        epochs=3, mixup=CutMix(alpha=0.2)
    )
    assert from_yaml(file("")) == Recipe()


def test_value_a_mixup_by_its_name_alone(file):
    assert from_yaml(file("mixup: cutmix\n")) == Recipe(mixup=CutMix())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch: 3\n", r"recipe.yaml: unknown field 'epoch'. Did you mean 'epochs'\?"),
        ("data: {sise: 3}\n", r"unknown field 'data.sise'. Did you mean 'data.size'\?"),
        ("mixup: {name: cutmix, eta: 1}\n", "unknown field 'mixup.eta'"),
        ("mixup: {name: cutmx}\n", r"unknown mixup 'cutmx'. Did you mean 'cutmix'\?"),
        ("mixup: [cutmix]\n", r"recipe.yaml: mixup must be a name, .* got \['cutmix'\]"),
        ("mixup: 3\n", r"recipe.yaml: mixup must be a name, .* got 3"),
        ("mixup: {name: 3}\n", "recipe.yaml: unknown mixup '3'"),
        ("epochs: null\n", "recipe.yaml: epochs must have a value, got null"),
        ("encoder: {name: null}\n", "recipe.yaml: encoder.name must have a value, got null"),
        ("mixup: {name: samix, eta: null}\n", "recipe.yaml: mixup.eta must have a value, got null"),
        ("epochs: many\n", "epochs"),
        ("epochs: 0\n", "epochs must be at least 1, got 0"),
        ("optimizer: {lr: [1, 2]}\n", "optimizer.lr"),
        ("a: [1, 2\n", "recipe.yaml is not YAML"),
        ("just words\n", "recipe.yaml must hold fields of a recipe, got str"),
        ("- 1\n- 2\n", "recipe.yaml must hold fields of a recipe, got list"),
    ],
)
def test_error_files(text, words, file):
    with pytest.raises(ValueError, match=words):
        from_yaml(file(text))


def test_error_a_file_of_bytes(tmp_path):
    (tmp_path / "recipe.yaml").write_bytes(b"\x89PNG\x00\xff")
    with pytest.raises(ValueError, match="recipe.yaml is not YAML"):
        from_yaml(tmp_path / "recipe.yaml")


def test_error_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.yaml does not exist. Expected a YAML file"):
        from_yaml(tmp_path / "none.yaml")


def test_value_what_may_be_null(file):
    text = (
        "optimizer: {clip: null}\ndata: {train_pictures: null, test_resize: null}\nmachine: {threads: null}\n"
    )
    assert from_yaml(file(text)) == Recipe()
