import pytest

from samix.report.groups import group_runs, method_label, split_recipe
from samix.report.runs import read_run


@pytest.mark.parametrize(
    ("recipe", "mixup", "family", "variant"),
    [
        ("demo/samix", "samix", "demo", ""),
        ("cifar10-small/samix-fast", "samix", "cifar10-small", "fast"),
        ("imagenet/r50-cutmix", "cutmix", "imagenet/r50", ""),
        ("table4/r18-samix-no-eta", "samix", "table4/r18", "no-eta"),
        ("samix", "samix", "", ""),
        ("cifar10-small", "puzzlemix", "cifar10-small", ""),
        ("demo/automixer", "automix", "demo/automixer", ""),
        ("mixup/samix", "mixup", "mixup/samix", ""),
    ],
)
def test_family_and_variant(recipe, mixup, family, variant):
    assert split_recipe(recipe, mixup) == (family, variant)


@pytest.mark.parametrize(
    ("recipe", "mixup", "clean_weight", "label"),
    [
        ("demo/mixup", "mixup", 0.0, "mixup"),
        ("demo/mixup", "mixup", 1.0, "mixup + clean"),
        ("demo/mixup-clean", "mixup", 0.5, "mixup + clean"),
        ("demo/mixup-long", "mixup", 0.5, "mixup + clean (long)"),
        ("demo/samix", "samix", 1.0, "samix"),
        ("demo/automix", "automix", 1.0, "automix"),
        ("demo/plain", "plain", 1.0, "plain"),
        ("demo/samix-fast", "samix", 1.0, "samix (fast)"),
    ],
)
def test_label(write_run, recipe, mixup, clean_weight, label):
    assert method_label(read_run(write_run(recipe, mixup, clean_weight=clean_weight))) == label


def test_seeds_come_together_in_the_order_of_the_tables(write_run):
    names = ("samix", "zigzag", "automix", "cutmix", "plain", "mixup")
    runs = [read_run(write_run(f"demo/{name}", name, seed)) for seed in (1, 0) for name in names]
    groups = group_runs(runs)
    assert [group.method for group in groups] == ["plain", "mixup", "cutmix", "zigzag", "automix", "samix"]
    assert all([run.seed for run in group.runs] == [0, 1] for group in groups)


def test_different_settings_are_not_averaged(write_run):
    write = [
        write_run(),
        write_run(folder="again/samix", seed=1, settings={"epochs": 50, "machine": {"threads": 2}}),
        write_run(seed=2, settings={"machine": {"threads": 1}, "eval_every": 2}),
    ]
    groups = group_runs(map(read_run, write))
    assert [group.method for group in groups] == ["samix [epochs 4]", "samix [epochs 50]"]
    assert [[run.seed for run in group.runs] for group in groups] == [[0, 2], [1]]
