"""Every pre-training family: rows are found, built, and carry the paper's settings."""

import pytest
import torch

from samix.engine.pretraining import METHODS, Pretraining
from samix.engine.recipe import choice_name
from samix.methods.ssl.base import Terms
from samix.mixups import CutMix
from samix.mixups.published import published
from samix.recipes import PRESETS, PRETRAININGS, find_pretraining
from samix.recipes.ssl_base import row_of

ROWS = [f"{family}/{row}" for family, f in PRETRAININGS.items() for row in f.rows]


@pytest.mark.parametrize("name", ROWS)
def test_value_every_row_is_found_and_named_after_method_and_mixup(name):
    full, recipe = find_pretraining(name)
    method, _, mixup = name.partition("/")[2].partition("+")
    assert full == name and isinstance(recipe, Pretraining)
    assert choice_name(recipe, "method") == method
    assert choice_name(recipe, "mixup") == (mixup or "plain")


@pytest.mark.parametrize("family", PRETRAININGS)
def test_value_every_method_of_a_family_builds(family):
    for method in PRETRAININGS[family].methods:
        _, recipe = find_pretraining(family, method, "samix-i")
        with torch.device("meta"):
            model = recipe.build(100_000, initial=False)
        assert set(model.parameter_groups()) >= {"encoder", "mixer"}


def test_value_the_cpu_families_have_every_method():
    for family in ("ssl-demo", "ssl-small", "imagenet-r50-ssl"):
        assert set(PRETRAININGS[family].methods) == set(METHODS)


def test_value_words_stand_in_for_parts_of_the_name():
    assert find_pretraining("ssl-demo")[0] == "ssl-demo/moco-v2"
    assert find_pretraining("ssl-demo", "byol", "cutmix")[0] == "ssl-demo/byol+cutmix"
    assert find_pretraining("ssl-demo/moco-v2+mixup", "byol")[0] == "ssl-demo/byol+mixup"


@pytest.mark.parametrize("name", PRESETS)
def test_value_presets_bring_policy_and_terms(name):
    full, recipe = find_pretraining("ssl-demo", mixup=name)
    assert full == f"ssl-demo/moco-v2+{name}"
    assert (recipe.mixup, recipe.terms) == PRESETS[name]


def test_value_settings_of_the_presets():
    assert PRESETS["wbsim"] == (CutMix(alpha=1.0, box="paper"), Terms(base=0.5, mixed=0.5))
    assert PRESETS["i-mix"].terms.base == 0 and PRESETS["i-mix"].terms.dominant
    assert PRESETS["un-mix"].terms.reversed_pairs


def test_value_settings_of_the_paper():
    _, moco = find_pretraining("imagenet-r50-ssl/moco-v2+samix-c")
    assert (moco.optimizer.lr, moco.batch_size, moco.epochs, moco.method.queue) == (0.03, 256, 200, 65536)
    assert (moco.mixup.alpha, moco.mixup.eta, moco.mixup.clusters.count) == (2.0, 0.5, 200)
    assert moco.mixup.adjusting.margin == 0.1 and moco.mixup.adjusting.lam_margin < 0
    _, third = find_pretraining("imagenet-r50-ssl/moco-v3")
    assert (third.optimizer.name, third.optimizer.lr, third.batch_size, third.method.tau) == (
        "lars",
        4.8,
        4096,
        1,
    )
    _, vit = find_pretraining("imagenet-vit-ssl/moco-v3")
    assert (vit.method.tau, vit.method.layers, vit.encoder.name) == (0.2, 3, "vit-s-moco")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("ssl-dmo",), r"unknown recipe 'ssl-dmo'. Did you mean 'ssl-demo'\?.*samix recipes"),
        (("ssl-demo/moko-v2",), r"unknown method 'moko-v2'. Did you mean 'moco-v2'\?"),
        (("ssl-demo", None, "samix"), r"unknown mixup 'samix'"),
    ],
)
def test_error_unknown(words, text):
    with pytest.raises(ValueError, match=text):
        find_pretraining(*words)


@pytest.mark.parametrize("row", ["byol", "moco-v2+un-mix", "moco-v2+i-mix", "simclr+cutmix"])
def test_value_a_recipe_knows_what_its_row_is_called(row):
    assert row_of(find_pretraining(f"ssl-small/{row}")[1]) == row


@pytest.mark.parametrize("family", ["tiny-r18-ssl", "imagenet-r50-ssl", "imagenet-vit-ssl"])
def test_value_hand_made_mixups_of_the_papers_tables_are_as_published(family):
    method = next(iter(PRETRAININGS[family].methods))
    for name in ("manifoldmix", "cutmix", "fmix", "saliencymix", "gridmix"):
        mixup = find_pretraining(f"{family}/{method}+{name}")[1].mixup
        assert mixup == published(name, "ssl") and mixup.alpha == 1.0
