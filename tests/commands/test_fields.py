"""Recipes as words and as YAML: there and back, and refused by name."""

import warnings
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal

import pytest
import yaml
from jsonargparse import ArgumentParser

from samix.commands.fields import explain, from_yaml, override
from samix.core.renamed import OLD_NAMES
from samix.engine.machine import Machine
from samix.engine.optim import Optimizer
from samix.engine.pretraining import VIEW_POLICIES, Pretraining
from samix.engine.recipe import Recipe, to_dict
from samix.engine.training import POLICIES, Training
from samix.learned import LEARNED, LEARNED_WITHOUT_LABELS, LearnedMixup, MixerConfig
from samix.mixups import CutMix
from samix.recipes import RECIPES

ROWS = {
    f"{family}/{row}": recipe
    for family, f in RECIPES.items()
    for row, recipe in f.rows.items()
    if not f.cells or family in ("cifar100-r18", "imagenet-deit-s")  # other tables differ in numbers only
}


@pytest.fixture
def file(tmp_path):
    """Writes a text to a YAML file."""

    def write(text: str):
        path = tmp_path / "recipe.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("name", ROWS)
def test_invariant_recipes_survive_their_files(name, file):
    assert from_yaml(file(yaml.safe_dump(to_dict(ROWS[name])))) == ROWS[name]


@pytest.mark.parametrize("name", POLICIES)
def test_value_no_words_change_nothing(name):
    base = Training(mixup=POLICIES[name]())
    assert override(base, []) == base


def test_value_words_change_exactly_their_fields():
    base = Training(mixup=LearnedMixup())
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
    base = RECIPES["imagenet-r50"].rows["cutmix"]
    changed = override(base, ["--epochs", "3"])
    assert changed == replace(base, epochs=3)
    assert isinstance(changed.mixup, CutMix)


def test_value_a_short_file_takes_defaults(file):
    assert from_yaml(file("epochs: 3\nmixup: {name: cutmix, alpha: 0.2}\n")) == Training(
        epochs=3, mixup=CutMix(alpha=0.2)
    )
    assert from_yaml(file("")) == Training()


def test_value_a_mixup_by_its_name_alone(file):
    assert from_yaml(file("mixup: cutmix\n")) == Training(mixup=CutMix())


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
        ("a: [1, 2\n", "recipe.yaml is not readable YAML"),
        ("just words\n", "recipe.yaml must hold fields of a recipe by name, got .just words"),
        ("- 1\n- 2\n", "recipe.yaml must hold fields of a recipe by name, got list of 2"),
    ],
)
def test_error_files(text, words, file):
    with pytest.raises(ValueError, match=words):
        from_yaml(file(text))


def test_error_a_file_of_bytes(tmp_path):
    (tmp_path / "recipe.yaml").write_bytes(b"\x89PNG\x00\xff")
    with pytest.raises(ValueError, match="recipe.yaml is not text"):
        from_yaml(tmp_path / "recipe.yaml")


def test_error_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.yaml does not exist. Expected a YAML file"):
        from_yaml(tmp_path / "none.yaml")


def test_value_what_may_be_null(file):
    text = (
        "optimizer: {clip: null}\ndata: {train_pictures: null, test_resize: null}\nmachine: {threads: null}\n"
    )
    assert from_yaml(file(text)) == Training()


# Closed sets of words.

WRONG_WORDS = {  # field: a wrong word, the one to suggest, all of them
    "data.view": ("crop_flip", "crop-flip", "crop-flip, resized-crop, none"),
    "optimizer.name": ("", None, "sgd, adamw, lamb, lars"),
    "machine.tracker": ("wand b", "wandb", "none, tensorboard, wandb"),
    "mixup.mixer.upsample": ("billinear", "bilinear", "bilinear, nearest"),
}


def complaint(field: str) -> str:
    """What is said of a wrong word."""
    value, right, known = WRONG_WORDS[field]
    hint = f" Did you mean '{right}'?" if right else ""
    return f"unknown {field} '{value}'.{hint} Available: {known}."


@pytest.mark.parametrize("field", WRONG_WORDS)
def test_error_a_wrong_word_on_the_command_line(field):
    value = WRONG_WORDS[field][0]
    for words in ([f"--{field}", value], [f"--{field}={value}"]):
        with pytest.raises(ValueError) as refused:
            override(Training(mixup=LearnedMixup()), words)
        assert str(refused.value) == complaint(field)


@pytest.mark.parametrize("field", WRONG_WORDS)
def test_error_a_wrong_word_in_a_file(field, file):
    settings: Any = WRONG_WORDS[field][0]
    for name in reversed(field.split(".")):
        settings = {name: settings}
    settings["mixup"] = {"name": "samix"} | settings.get("mixup", {})
    path = file(yaml.safe_dump(settings))
    with pytest.raises(ValueError) as refused:
        from_yaml(path)
    assert str(refused.value) == f"{path}: {complaint(field)}"


def test_error_null_where_a_word_must_stand():
    with pytest.raises(ValueError, match="unknown optimizer.name 'null'. Available: sgd"):
        override(Training(), ["--optimizer.name", "null"])
    with pytest.raises(ValueError, match="--epochs must be a whole number, got null."):
        override(Training(), ["--epochs", "null"])


@dataclass(frozen=True, kw_only=True)
class Ball:
    """Settings with a word that may be null."""

    colour: Literal["red", "blue"] | None = None


def test_error_a_wrong_word_that_may_be_null():
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(Ball, "ball")
    assert parser.parse_args(["--ball.colour", "null"]).ball.colour is None
    with pytest.raises(Exception, match="Literal") as refused:
        parser.parse_args(["--ball.colour", "bleu"])
    text = " ".join(str(refused.value).split())
    expected = "unknown ball.colour 'bleu'. Did you mean 'blue'? Available: red, blue, null."
    assert explain(text, "--") == expected
    assert explain(text, "a.yaml: ") == f"a.yaml: {expected}"


def test_value_a_complaint_without_a_field_stays_as_it_is():
    assert explain("something else", "--") == "something else"


# Names of settings before 0.2.

OLD_VALUES = {
    "beta": 0.7,
    "beta_end": 0.3,
    "mask_margin": 0.05,
    "variance_weight": 0.25,
    "adjust": 0.125,
    "adjust_margin": 0.2,
    "lam_margin": 0.04,
    "warmup": 0.4,
    "momentum": 0.95,
    "momentum_end": 0.96,
    "momentum_hold": 0.5,
    "mixer_fraction": 0.6,
    "mixer_probability": 0.8,
}


def plain_recipe(mixup: str) -> Recipe:
    """A recipe with a learned mixup, supervised or not."""
    known = LEARNED | LEARNED_WITHOUT_LABELS
    kind = Training if mixup in LEARNED else Pretraining
    return kind(mixup=known[mixup]())


def test_value_every_old_name_is_tested():
    assert set(OLD_VALUES) == set(OLD_NAMES)


def new_words() -> list[str]:
    """The old values under their new names."""
    return [f"--mixup.{OLD_NAMES[old]}={value}" for old, value in OLD_VALUES.items()]


@pytest.mark.parametrize("mixup", [*LEARNED, *LEARNED_WITHOUT_LABELS])
@pytest.mark.parametrize("equals", ["=", " "])
def test_value_old_words_set_what_the_new_ones_set(mixup, equals):
    base = plain_recipe(mixup)
    words = " ".join(f"--mixup.{old}{equals}{value}" for old, value in OLD_VALUES.items()).split(" ")
    with pytest.warns(FutureWarning) as warned:
        changed = override(base, words)
    assert changed == override(base, new_words())
    says = {str(warning.message) for warning in warned}
    assert says == {f"--mixup.{old} is now called --mixup.{new}." for old, new in OLD_NAMES.items()}
    for place in OLD_NAMES.values():
        find = attrgetter(place)
        assert find(changed.mixup) != find(base.mixup), "a default would show nothing"


@pytest.mark.parametrize("mixup", [*LEARNED, *LEARNED_WITHOUT_LABELS])
def test_value_an_old_file_gives_the_recipe_of_a_new_one(mixup, file):
    base = plain_recipe(mixup)
    new = override(base, new_words())
    values = to_dict(new)
    assert from_yaml(file(yaml.safe_dump(values))) == new
    groups = {place.partition(".")[0] for place in OLD_NAMES.values()}
    values["mixup"] = {
        name: value for name, value in values["mixup"].items() if name not in groups
    } | OLD_VALUES
    assert from_yaml(file(yaml.safe_dump(values))) == new


def test_value_old_and_new_names_in_one_file(file):
    text = "mixup: {name: samix, beta: 0.7, mask: {margin: 0.05}}\n"
    new = "mixup: {name: samix, mask: {beta: 0.7, margin: 0.05}}\n"
    assert from_yaml(file(text)) == from_yaml(file(new))


def test_value_new_names_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        override(plain_recipe("samix"), ["--mixup.mask.beta", "0.7", "--optimizer.momentum", "0.8"])


def test_value_mochi_keeps_a_warmup_of_its_own(file):
    base = Pretraining(mixup=VIEW_POLICIES["mochi"]())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        changed = override(base, ["--mixup.warmup", "0.5"])
    assert changed == replace(base, mixup=replace(base.mixup, warmup=0.5)) != base
    assert from_yaml(file(yaml.safe_dump(to_dict(changed)))) == changed
