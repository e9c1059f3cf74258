"""Every pre-training family: rows are found, built, and carry the paper's settings."""

import pytest
import torch

from samix.data import IMAGENET_STATS
from samix.engine.pretraining import METHODS, VIEW_POLICIES, Pretraining
from samix.engine.recipe import choice_name
from samix.methods.ssl.base import Terms
from samix.mixups import CutMix, ManifoldMix
from samix.mixups.published import published
from samix.recipes import PRESETS, PRETRAININGS, Preset, find_pretraining
from samix.recipes.ssl_base import row_of
from samix.runs.mixers import load_mixer

ROWS = [f"{family}/{row}" for family, f in PRETRAININGS.items() for row in f.rows]


@pytest.mark.parametrize("name", ROWS)
def test_value_every_row_is_found_and_named_after_method_and_mixup(name):
    full, recipe = find_pretraining(name)
    family, _, row = name.partition("/")
    method, _, mixup = row.partition("+")
    assert full == name and isinstance(recipe, Pretraining)
    assert choice_name(recipe, "method") == method
    known = PRETRAININGS[family].mixups.get(mixup, PRESETS.get(mixup))
    if mixup in VIEW_POLICIES or not mixup:
        assert choice_name(recipe, "mixup") == (mixup or "plain")
    elif isinstance(known, Preset):
        assert (recipe.mixup, recipe.terms) == known
    else:
        assert recipe.mixup == known


BUILT = [
    *(("ssl-small", method) for method in PRETRAININGS["ssl-small"].methods),
    ("stl10-r18-ssl", "swav"),
    ("imagenet-r50-ssl", "moco-v1"),
    ("imagenet-vit-ssl", "moco-v3"),
]
"""Every method, and encoders that are built otherwise; the slow test builds all rows."""


@pytest.mark.parametrize(("family", "method"), BUILT)
def test_value_every_method_builds(family, method):
    _, recipe = find_pretraining(family, method, "samix-i")
    with torch.device("meta"):
        model = recipe.build(100_000, initial=False)
    assert set(model.parameter_groups()) >= {"encoder", "mixer"}


@pytest.fixture(scope="module")
def some_mixer(finished):
    """A trained Mixer that stands in for those of the paper's rows."""
    return load_mixer(str(finished))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_value_every_row_builds(name, some_mixer, monkeypatch):
    monkeypatch.setattr("samix.engine.pretrained.load_mixer", lambda mixer: some_mixer)
    recipe = find_pretraining(name)[1]
    # So many pictures that the clusters of a sweep fit; the CPU families have as many as they need.
    count = {"ssl-demo": 1347, "ssl-small": 5000}.get(name.partition("/")[0], 100_000)
    with torch.device("meta"):
        model = recipe.build(count, IMAGENET_STATS, initial=False)
    learned = {"mixer"} if getattr(recipe.mixup, "learned", False) else set()
    assert set(model.parameter_groups()) >= {"encoder"} | learned


@pytest.mark.parametrize(("family", "pictures"), [("ssl-demo", 1347), ("ssl-small", 5000)])
@pytest.mark.parametrize("mixup", ["samix-c", "inter-intra", "puzzlemix-pl"])
def test_value_clusters_of_small_families_fit_their_pictures(family, pictures, mixup):
    """What the README prints must run: 200 clusters of 20 pictures are too many for 1,347."""
    _, recipe = find_pretraining(family, mixup=mixup)
    clusters = recipe.mixup.clusters
    assert clusters.count * clusters.min_size <= pictures
    with torch.device("meta"):
        assert recipe.build(pictures, IMAGENET_STATS, initial=False).pseudo.memory.labels.shape == (pictures,)


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
    assert (vit.optimizer.weight_decay, vit.optimizer.decay_all) == (0.1, True)


@pytest.mark.parametrize(
    "name", ["stl10-r18-ssl", "tiny-r18-ssl", "tiny-r50-ssl", "imagenet-r18-ssl", "imagenet-r50-ssl/moco-v1"]
)
def test_value_moco_shuffles_between_eight_groups(name):
    """In one process batch norm's statistics would tell which query belongs to which key."""
    assert find_pretraining(name)[1].method.norm_groups == 8


def test_value_hand_made_mixups_are_as_published():
    for policy in ("mixup", "cutmix", "manifoldmix", "saliencymix", "fmix", "resizemix"):
        _, recipe = find_pretraining("stl10-r18-ssl", mixup=policy)
        assert recipe.mixup == published(policy, "ssl") and recipe.mixup.alpha == 1
    assert find_pretraining("stl10-r18-ssl", mixup="fmix")[1].mixup.spectrum == "code"
    assert find_pretraining("stl10-r18-ssl", mixup="puzzlemix-pl")[1].mixup.policy.max_exponent == 3
    assert find_pretraining("ssl-small", mixup="manifoldmix")[1].mixup == ManifoldMix()


def test_value_swav_on_small_batches():
    """Its own code for a batch of 256: lr .6 to 6e-4, a queue from epoch 15, prototypes fixed for one."""
    for name, epochs in (("stl10-r18-ssl", 400), ("stl10-r50-ssl-800", 800)):
        swav = find_pretraining(name, "swav")[1]
        assert (swav.optimizer.lr, swav.optimizer.min_lr, swav.batch_size) == (0.6, 6e-4, 256)
        assert swav.method.stored == 3840 and swav.augment == "swav" and swav.epochs == epochs
        assert (swav.method.store_from * epochs, swav.method.freeze * epochs) == pytest.approx((15, 1))
    assert find_pretraining("imagenet-r50-ssl", "swav")[1].crops.count == 0


def test_value_frozen_mixers_come_from_the_runs_of_another_family():
    for name, mixup in (("samix-i-p", "samix-i"), ("samix-c-p", "samix-c")):
        run = find_pretraining("tiny-r18-ssl", mixup=name)[1].mixup.mixer
        folder, source, seed = run.split("/", 1)[0], run.split("/", 1)[1].rsplit("/", 1)[0], run[-1]
        assert (folder, seed) == ("runs", "0")
        _, recipe = find_pretraining(source)
        assert (choice_name(recipe, "mixup"), recipe.encoder.name, recipe.epochs) == (mixup, "resnet50", 100)
    assert find_pretraining("tiny-r18-ssl", mixup="samix-i-p")[1].mixup.size == 96
    assert find_pretraining("imagenet-vit-ssl", mixup="samix-i-p")[1].mixup.size is None


LOSSES = {  # local, eta, instance
    "samix-i-bce": (1.0, 0.0, None),
    "samix-i-infonce": (0.0, 1.0, None),
    "samix-i": (1.0, 0.5, None),
    "samix-c-ce": (0.0, 1.0, 0.0),
    "samix-c-ce-infonce": (0.0, 1.0, 1.0),
    "samix-c": (1.0, 0.5, 0.0),
}


@pytest.mark.parametrize("family", ["stl10-r18-ssl-losses", "tiny-r18-ssl-losses"])
def test_value_losses_of_the_mixer(family):
    for name, weights in LOSSES.items():
        mixup = find_pretraining(family, mixup=name)[1].mixup
        assert (mixup.local, mixup.eta, getattr(mixup, "instance", None)) == weights
    plain = find_pretraining(family, mixup="samix-c-infonce")[1].mixup
    assert (plain.local, plain.eta, plain.instance, plain.drop_alike) == (0.0, 0.0, 1.0, True)


def test_value_parts_of_the_mixer_come_one_by_one():
    rows = [
        find_pretraining(f"tiny-r18-ssl-parts/{row}")[1].mixup
        for row in PRETRAININGS["tiny-r18-ssl-parts"].rows
    ]
    seen = [
        (m.mixer.encoding, m.mixer.content, m.mask.beta > 0, m.adjusting.prob > 0, (m.local, m.eta))
        for m in rows
    ]
    assert seen == [
        ("concat", "linear", False, False, (0, 1)),
        ("adaptive", "linear", False, False, (0, 1)),
        ("adaptive", "nonlinear", False, False, (0, 1)),
        ("adaptive", "nonlinear", True, False, (0, 1)),
        ("adaptive", "nonlinear", True, True, (0, 1)),
        ("adaptive", "nonlinear", True, True, (1, 0.5)),
    ]
    assert rows[-1] == find_pretraining("tiny-r18-ssl/moco-v2+samix-c")[1].mixup


def test_value_studies_by_name():
    views = find_pretraining("stl10-r18-ssl-views/moco-v2+cutmix-same-only")[1]
    assert (views.terms.same_view, views.terms.base) == (True, 0.0) and views.mixup == published(
        "cutmix", "ssl"
    )
    grid = find_pretraining("tiny-r18-ssl-grid/moco-v2+cutmix-2-mixup-0.2")[1].mixup.policy
    assert (grid.inter, grid.alpha_inter, grid.intra, grid.alpha_intra) == ("cutmix", 2.0, "mixup", 0.2)
    assert len(PRETRAININGS["tiny-r18-ssl-grid"].mixups) == 64
    sweep = find_pretraining("tiny-r18-ssl-sweeps/moco-v2+samix-c-clusters-50")[1]
    assert sweep.mixup.clusters.count == 50


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("ssl-dmo",), r"unknown recipe 'ssl-dmo'. Did you mean 'ssl-demo'\?.*samix recipes"),
        (("ssl-demo/moko-v2",), r"unknown method 'moko-v2'. Did you mean 'moco-v2'\?"),
        (("ssl-demo", None, "samix"), r"unknown mixup 'samix'"),
        (("ssl-demo", None, "samix-c-ce"), r"unknown mixup 'samix-c-ce'. Did you mean 'samix-c'"),
        (
            ("tiny-r18-ssl-losses", None, "samix-c-cee"),
            r"unknown mixup 'samix-c-cee'. Did you mean 'samix-c-ce'",
        ),
    ],
)
def test_error_unknown(words, text):
    with pytest.raises(ValueError, match=text):
        find_pretraining(*words)


@pytest.mark.parametrize("row", ["byol", "moco-v2+un-mix", "moco-v2+i-mix", "simclr+cutmix"])
def test_value_a_recipe_knows_what_its_row_is_called(row):
    assert row_of(find_pretraining(f"ssl-small/{row}")[1]) == row
