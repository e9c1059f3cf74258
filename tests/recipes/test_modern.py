"""RSB A3, DeiT and Swin: the settings, the paper's cells, and one step of every row."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from samix.data import IMAGENET_STATS, train_view
from samix.data import test_view as view_in_tests
from samix.engine.optim import build_optimizer, find_undecayed
from samix.engine.pretrained import PretrainedMixup
from samix.engine.training import Training
from samix.learned import Adjusting
from samix.learned.samix import LearnedMixup
from samix.mixups import (
    AttentiveMix,
    CutMix,
    MixUp,
    MixupCutMix,
    MixupTokenMix,
    MixupTransMix,
    PuzzleMix,
    SaliencyMix,
)
from samix.nn import zoo
from samix.nn.from_timm import timm_network
from samix.nn.resnet import small_resnet
from samix.nn.zoo import ENCODERS
from samix.recipes import RECIPES, find_recipe

A3 = ("imagenet-r50-a3", "imagenet-r50-a3-mbce")
TRANSFORMERS = ("imagenet-deit-s", "imagenet-swin-t")
ROWS = [f"{family}/{row}" for family in (*A3, *TRANSFORMERS) for row in RECIPES[family].rows]


def test_value_every_cell_has_a_row_and_every_row_but_plain_a_cell():
    count = 0
    for family in (*A3, *TRANSFORMERS):
        cells, rows = RECIPES[family].cells, RECIPES[family].rows
        assert set(cells) == set(rows) - {"plain"}
        assert all(len(found) == 1 for found in cells.values())
        count += len(cells)
    assert count == 40
    numbers = [RECIPES[f].cells["samix"][0].number for f in (*A3, *TRANSFORMERS)]
    assert numbers == [78.33, 78.45, 80.94, 81.87]
    assert RECIPES["imagenet-swin-t"].cells["transmix"][0].number == 80.8, "as it is printed"
    assert RECIPES["imagenet-deit-s"].cells["samix-p"][0].row == ("SAMix^P",)


@pytest.mark.parametrize("family", A3)
def test_value_rsb_a3(family):
    for name, recipe in RECIPES[family].rows.items():
        data, optimizer = recipe.data, recipe.optimizer
        assert (data.size, data.test_size, data.test_resize, data.view) == (160, 224, 236, "resized-crop")
        assert (data.rand_augment, data.erasing, data.jitter, data.repeats) == (6, 0.0, 0.0, 1)
        assert (optimizer.name, optimizer.lr, optimizer.min_lr) == ("lamb", 0.008, 1e-6)
        assert (optimizer.weight_decay, optimizer.warmup_epochs, optimizer.warmup_start) == (0.02, 5, 1e-5)
        assert (recipe.epochs, recipe.batch_size, optimizer.average) == (100, 2048, None)
        assert recipe.machine.sync_norm and recipe.encoder.drop_path == 0
        assert (recipe.objective.smoothing, recipe.objective.two_hot) == (0.0, False)
        assert recipe.objective.binary == family.endswith("mbce")
        if name in ("automix", "samix"):
            assert (optimizer.mixer_lr, optimizer.mixer_min_lr) == (0.008, 8e-5)
            assert (recipe.mixup.copy.hold, recipe.mixup.speed.prob) == (0.1, 1.0)


@pytest.mark.parametrize("family", TRANSFORMERS)
def test_value_deit_and_swin(family):
    swin = family.endswith("swin-t")
    for name, recipe in RECIPES[family].rows.items():
        data, optimizer = recipe.data, recipe.optimizer
        assert (data.size, data.tested_size, data.test_resize) == (224, 224, 256)
        assert (data.rand_augment, data.erasing, data.jitter, data.repeats) == (9, 0.25, 0.0, 1)
        assert (optimizer.name, optimizer.lr, optimizer.clip) == ("adamw", 1e-3, 5.0)
        assert optimizer.min_lr == (1e-4 if name == "transmix" and not swin else 1e-5)
        assert (optimizer.weight_decay, optimizer.beta2) == (0.05, 0.999)
        assert optimizer.warmup_epochs == (20 if swin else 5)
        assert (recipe.epochs, recipe.batch_size, optimizer.average) == (300, 1024, None)
        assert recipe.encoder.drop_path == (0.2 if swin else 0.1)
        assert recipe.objective.smoothing == 0.1 and not recipe.objective.binary
        if name in ("automix", "samix"):
            assert (optimizer.mixer_lr, optimizer.mixer_min_lr) == (1e-3, 1e-4)
            assert (recipe.mixup.copy.hold, recipe.mixup.speed.prob) == (0.25, 0.8)


def test_value_policies():
    for family in (*A3, *TRANSFORMERS):
        rows = {name: recipe.mixup for name, recipe in RECIPES[family].rows.items()}
        mixup_alpha = 0.1 if family in A3 else 0.8
        assert rows["mixup+cutmix"] == MixupCutMix(mixup_alpha=mixup_alpha, cutmix_alpha=1.0, box="paper")
        assert rows["mixup"] == MixUp(alpha=0.2) and rows["cutmix"] == CutMix(alpha=0.2, box="paper")
        assert rows["saliencymix"] == SaliencyMix(alpha=0.2) and rows["attentivemix"] == AttentiveMix(
            alpha=2.0
        )
        assert rows["puzzlemix"] == PuzzleMix(alpha=1.0, max_exponent=3)
        frozen = rows["samix-p"]
        assert frozen == PretrainedMixup(
            mixer="runs/imagenet-r18/samix/0",
            size=RECIPES[family].rows["samix"].data.size,
            adjusting=Adjusting(),
        )
        for name, eta, variance in (("automix", 1.0, 0.0), ("samix", 0.1, 2.0)):
            mixup = rows[name]
            assert (mixup.alpha, mixup.eta, mixup.mask.variance) == (2.0, eta, variance)
            assert (mixup.mask.beta, mixup.mask.beta_end, mixup.mask.margin) == (0.1, 0.0, 0.1)
            assert (mixup.copy.momentum, mixup.copy.momentum_end) == (0.999, 0.99999)
            assert (mixup.adjusting.prob, mixup.adjusting.lam_margin) == (0.0, 0.08)
        assert rows["samix"].mixer.dropout == 0.1
    for family in TRANSFORMERS:
        rows = RECIPES[family].rows
        assert rows["transmix"].mixup == MixupTransMix(mixup_alpha=0.8, transmix_alpha=1.0, switch_prob=0.5)
        assert rows["tokenmix"].mixup == MixupTokenMix(mixup_alpha=0.8, switch_prob=0.5)


def test_value_views_of_rsb_a3():
    data = find_recipe("imagenet-r50-a3/samix")[1].data
    pictures = [torch.randint(0, 256, (3, 260, 300), dtype=torch.uint8) for _ in range(2)]
    assert train_view(data)(pictures).shape == (2, 3, 160, 160)
    assert view_in_tests(data)(pictures).shape == (2, 3, 224, 224)


def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three networks with as few blocks and channels as they can have."""
    deit = partial(timm_network, "deit_small_patch16_224", embed_dim=24, num_heads=3, depth=6)
    swin = {"embed_dim": 12, "depths": (1, 1, 2, 2), "num_heads": (1, 1, 2, 3), "window_size": 2}
    builders = {
        "resnet50": lambda drop_path_rate: small_resnet(8),
        "deit-s": lambda size, **options: deit(img_size=size, **options),
        "swin-t": lambda size, **options: timm_network(
            "swin_tiny_patch4_window7_224", img_size=size, **swin, **options
        ),
    }
    for name, build in builders.items():
        monkeypatch.setitem(zoo.ENCODERS, name, replace(ENCODERS[name], build=build))


def step(recipe: Training, x: Tensor, y: Tensor) -> tuple[nn.Module, dict[str, Tensor]]:
    """The model behind one step of its optimizer, and its weights before."""
    model = recipe.build(10, IMAGENET_STATS, initial=False).train()
    before = {name: value.clone() for name, value in model.named_parameters()}
    optimizer = build_optimizer(model.parameter_groups(), recipe.optimizer, find_undecayed(model))
    model(x, y, 0.5).total.backward()
    optimizer.step()
    model.after_step(0.5)
    return model, before


@pytest.mark.parametrize(
    "name", [row for row in ROWS if "mbce" not in row or row.endswith(("/samix", "+cutmix"))]
)
def test_value_one_step_of_every_row(name, monkeypatch, request):
    """At 64 px, with small networks of the same kind; all that may learn does, and stays finite."""
    small_networks(monkeypatch)
    recipe = find_recipe(name)[1]
    recipe = replace(recipe, data=replace(recipe.data, size=64, test_size=None, test_resize=72), batch_size=8)
    if isinstance(recipe.mixup, PretrainedMixup):
        run = str(request.getfixturevalue("finished"))
        recipe = replace(recipe, mixup=PretrainedMixup(mixer=run, size=16))
    if isinstance(recipe.mixup, LearnedMixup):  # with certainty instead of in 80 % of the steps
        recipe = replace(recipe, mixup=replace(recipe.mixup, speed=replace(recipe.mixup.speed, prob=1.0)))
    torch.manual_seed(0)
    model, before = step(recipe, torch.randn(8, 3, 64, 64), torch.arange(8))
    groups = model.parameter_groups()
    assert set(groups) == ({"encoder", "mixer"} if isinstance(recipe.mixup, LearnedMixup) else {"encoder"})
    after = dict(model.named_parameters())
    assert all(value.isfinite().all() for value in after.values())
    for role, members in groups.items():
        mine = [n for n, p in after.items() if any(p is member for member in members)]
        moved = [n for n in mine if not torch.equal(before[n], after[n])]
        assert len(moved) > 0.5 * len(mine), role


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_value_one_step_at_the_real_size(name, request):
    recipe = find_recipe(name)[1]
    if isinstance(recipe.mixup, PretrainedMixup):
        run = str(request.getfixturevalue("finished"))
        recipe = replace(recipe, mixup=replace(recipe.mixup, mixer=run))
    torch.manual_seed(0)
    side = recipe.data.size
    model, _ = step(recipe, torch.randn(2, 3, side, side), torch.arange(2))
    assert all(value.isfinite().all() for value in model.parameters())
    logits = model.eval().heads(torch.randn(1, 3, recipe.data.tested_size, recipe.data.tested_size))
    assert logits["mix_q"].shape == (1, 10)
