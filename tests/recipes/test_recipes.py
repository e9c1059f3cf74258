"""Every row of every family: it builds, its name says its policy, and the paper's settings are there."""

from dataclasses import replace

import pytest
import torch

from samix import recipes
from samix.data import IMAGENET_STATS
from samix.data import test_view as view_in_tests
from samix.engine.pretrained import PretrainedMixup
from samix.engine.recipe import policy_name
from samix.engine.training import POLICIES
from samix.learned.samix import LearnedMixup
from samix.mixups import CutMix, FMix
from samix.mixups.published import published
from samix.recipes import RECIPES, find_pretraining, find_recipe
from samix.recipes.ablations import PARTS
from samix.recipes.small_images import CUTTING

ROWS = {f"{family}/{row}": recipe for family, f in RECIPES.items() for row, recipe in f.rows.items()}
DECAYED = {("cifar100-rx50", name) for name in CUTTING}
"""Rows that decay weights five times as much as their family."""
WANTED = {"plain", "mixup", "cutmix", "automix", "samix"}


@pytest.mark.parametrize("family", RECIPES)
def test_value_families_have_the_rows_of_the_table(family):
    wanted = {"mixer": {"plain", "samix"}, "tiny-r18-parts": set(PARTS), "pets-parts": set(PARTS)}
    assert set(RECIPES[family].rows) >= wanted.get(family, WANTED)
    assert RECIPES[family].default in RECIPES[family].rows
    assert RECIPES[family].about.endswith(".")


@pytest.mark.parametrize("name", ROWS)
def test_value_every_row_is_found_and_named_after_its_policy(name):
    row = name.partition("/")[2]
    assert find_recipe(name) == (name, ROWS[name])
    frozen = row.endswith("-p")  # the Mixer of SAMix or SAMix-C, pre-trained
    named = policy_name(ROWS[name])
    if row not in POLICIES or ROWS[name].mixup.learned:
        assert named == ("samix-p" if frozen else row.partition("-")[0].rstrip("2"))
    else:
        assert named in (row, f"mixup+{row}")  # TransMix and TokenMix take turns with Mixup in the paper
    assert row.endswith("-clean") <= (ROWS[name].objective.clean_weight > 0)


# Those of the paper's tables are rehearsed, every one of them, by test_rehearsals.py (slow).
BUILT = [name for name in ROWS if name.endswith("/samix") or not RECIPES[name.partition("/")[0]].cells]


@pytest.mark.parametrize("name", BUILT)
def test_value_every_row_builds(name, request):
    recipe = ROWS[name]
    # Shapes without weights; probing runs the network, which needs no data on the meta device.
    device = torch.device("meta")
    if isinstance(recipe.mixup, PretrainedMixup):
        run = str(request.getfixturevalue("finished"))
        recipe, device = replace(recipe, mixup=replace(recipe.mixup, mixer=run)), torch.device("cpu")
    with device:
        model = recipe.build(10, IMAGENET_STATS, initial=False)
    method = getattr(model, "method", model)
    assert method.head.out_features == 10
    branch = recipe.objective.clean_weight > 0 and recipe.objective.clean_head
    assert (method.clean_head is not None) == branch
    assert ("mixer" in model.parameter_groups()) == isinstance(recipe.mixup, LearnedMixup)


def test_value_mixers_keep_a_trained_network_still_and_learn_from_evidence():
    trained = RECIPES["mixer"].rows["samix"]
    found = [find_pretraining(f"ssl-mixer/moco-v2+{name}")[1] for name in ("samix-i", "samix-c")]
    for recipe in (trained, *found):
        encoder, mixup = recipe.encoder, recipe.mixup
        assert (encoder.name, encoder.weights, encoder.frozen, encoder.freeze_norm) == (
            "lite0",
            "lite0",
            8,
            True,
        )
        assert mixup.mixer.balanced and (mixup.mask.beta, mixup.mask.evidence) == (0.0, 10.0)
        assert (recipe.optimizer.mixer_lr, recipe.optimizer.clip, recipe.epochs) == (0.05, 1.0, 4)
    with torch.device("meta"):
        model = trained.build(10, IMAGENET_STATS, initial=False)
    assert not any(parameter.requires_grad for parameter in model.encoder.network.parameters())


@pytest.mark.parametrize("family", ["folder", "flowers-lite0", "pets-lite0"])
def test_value_families_of_few_pictures_start_from_weights(family):
    for name, recipe in RECIPES[family].rows.items():
        assert (recipe.encoder.name, recipe.encoder.weights) == ("lite0", "lite0")
        assert recipe.encoder.freeze_norm
        assert (recipe.optimizer.lr, recipe.optimizer.head_lr, recipe.batch_size) == (5e-4, 10.0, 36)
        branch = name.endswith("-clean") or name in ("samix", "samix-fast", "automix")
        assert recipe.objective.clean_weight == branch and not recipe.objective.clean_head
        assert recipe.data.test == "val", "settings are chosen on validation pictures"


def test_value_a_folder_takes_any_size():
    recipe = RECIPES["folder"].rows["plain"]
    for size in (64, 224):
        view = view_in_tests(replace(recipe.data, size=size))
        assert view([torch.zeros(3, 300, 200, dtype=torch.uint8)]).shape == (1, 3, size, size)


@pytest.mark.parametrize("family", RECIPES)
def test_invariant_rows_of_a_family_share_data_length_and_an_encoders_optimizer(family):
    rows = [row for name, row in RECIPES[family].rows.items() if (family, name) not in DECAYED]
    assert len({(r.data, r.epochs, r.batch_size) for r in rows}) == 1
    settings = {(r.encoder, r.optimizer.name, r.optimizer.lr, r.optimizer.weight_decay) for r in rows}
    assert len(settings) == len({r.encoder for r in rows})


@pytest.mark.parametrize("family", ["cifar100-r18", "tiny-r18", "imagenet-r18", "imagenet-r50"])
def test_value_learned_rows_have_the_papers_settings(family):
    imagenet = family.startswith("imagenet")
    for name, adjust, eta in (("samix", 0.25, 0.5), ("automix", 0.0, 1.0)):
        recipe = RECIPES[family].rows[name]
        mixup = recipe.mixup
        assert (mixup.alpha, mixup.mask.beta, mixup.mask.beta_end, mixup.mask.margin) == (2.0, 0.1, 0.0, 0.1)
        assert mixup.adjusting.lam_margin == 0.08
        assert mixup.mask.variance == (0.0 if name == "automix" else 2.0)
        assert (mixup.copy.momentum, mixup.copy.momentum_end) == (0.999, 0.99999 if imagenet else 0.999999)
        assert mixup.mixer.init_std == 0.01
        assert mixup.adjusting.prob == (0.0 if imagenet else adjust)
        assert mixup.eta == (0.1 if imagenet and name == "samix" else eta)
        assert (recipe.objective.clean_weight, recipe.objective.clean_fraction) == (1.0, 1.0)
        assert mixup.speed.fraction == 1.0
        assert recipe.optimizer.mixer_lr == 0.1
        assert recipe.optimizer.mixer_min_lr == (0.05 if family == "cifar100-r18" else 1e-3)


ALPHAS = {  # CIFAR-100, Tiny-ImageNet, ImageNet
    "mixup": (1.0, 1.0, 0.2, 0.2),
    "cutmix": (0.2, 1.0, 0.2, 1.0),
    "manifoldmix": (2.0, 0.2, 0.2, 0.2),
    "saliencymix": (0.2, 1.0, 0.2, 1.0),
    "fmix": (0.2, 1.0, 0.2, 1.0),
    "resizemix": (1.0, 1.0, 0.2, 1.0),
    "puzzlemix": (1.0, 1.0, 1.0, 1.0),
    "comixup": (2.0, 2.0, 2.0, 2.0),
    "attentivemix": (2.0, 2.0, 2.0, 2.0),
    "gridmix": (0.2, 0.2, 0.2, 0.2),
    "samix": (2.0, 2.0, 2.0, 2.0),
}


@pytest.mark.parametrize("mixup", ALPHAS)
def test_value_alpha_of_the_papers_tables(mixup):
    families = ("cifar100-r18", "tiny-r18", "imagenet-r18", "imagenet-r50")
    assert tuple(find_recipe(family, mixup)[1].mixup.alpha for family in families) == ALPHAS[mixup]
    assert find_recipe("digits", mixup)[1].mixup.alpha == (2.0 if ALPHAS[mixup][0] == 2 else 1.0)


def test_value_mixups_of_the_papers_tables_are_mixed_as_published():
    """The official code's spectrum, scale and blocks; other families keep the mixups' own."""
    for family, blocks in (("cifar100-r18", 4), ("tiny-r18", 3), ("imagenet-r18", 3), ("imagenet-r50", 3)):
        fmix, resizemix, puzzlemix = (
            find_recipe(family, name)[1].mixup for name in ("fmix", "resizemix", "puzzlemix")
        )
        assert (fmix.spectrum, resizemix.from_alpha, puzzlemix.max_exponent) == ("code", True, blocks)
        assert find_recipe(f"{family}/saliencymix")[1].mixup == published(
            "saliencymix", RECIPES[family].published
        )
    assert find_recipe("cifar10-small/fmix")[1].mixup == FMix()


def test_value_every_public_name_is_there():
    assert all(hasattr(recipes, name) for name in recipes.__all__)


def test_value_a_family_alone_takes_its_default():
    assert find_recipe("demo") == find_recipe("demo/samix")


def test_value_a_mixup_chooses_the_row():
    assert find_recipe("cifar100-r18", "cutmix")[1].mixup == CutMix(alpha=0.2, box="paper")
    assert find_recipe("cifar100-r18/cutmix", "cutmix") == find_recipe("cifar100-r18", "cutmix")
    with pytest.raises(ValueError, match=r"names its row already.* write cifar100-r18 --mixup cutmix"):
        find_recipe("cifar100-r18/samix", "cutmix")


def test_value_a_mixup_without_a_row_takes_the_plain_row(monkeypatch):
    monkeypatch.delitem(RECIPES["demo"].rows, "automix")
    name, recipe = find_recipe("demo", "automix")
    assert name == "demo/automix" and recipe.mixup == POLICIES["automix"]()
    assert recipe.optimizer == RECIPES["demo"].rows["plain"].optimizer


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("dem",), r"unknown recipe 'dem'. Did you mean 'demo'\?.*samix recipes"),
        (("demo/cutmx",), r"unknown row of demo 'cutmx'. Did you mean 'cutmix'\?"),
        (("demo", "cutmx"), r"unknown mixup 'cutmx'. Did you mean 'cutmix'\?"),
        (("demo", "photos"), "'photos' is a trained Mixer: --mixup samix-p --mixup.mixer photos"),
    ],
)
def test_error_unknown(words, text):
    with pytest.raises(ValueError, match=text):
        find_recipe(*words)
