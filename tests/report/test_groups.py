"""Which runs belong together, and what they are called."""

import json
import shutil

import pytest

from samix.engine.recipe import to_dict
from samix.learned import LEARNED, LEARNED_WITHOUT_LABELS
from samix.recipes import PRESETS, PRETRAININGS, RECIPES, find_pretraining
from samix.report.groups import difference_labels, group_runs, method_label, split_recipe
from samix.runs.folder import Run, read_run
from samix.runs.settings import LEARNED_ON_MACHINE


@pytest.mark.parametrize(
    ("recipe", "method", "family", "row"),
    [
        ("demo/samix", None, "demo", "samix"),
        ("cifar10-small/mixup2-clean", None, "cifar10-small", "mixup2-clean"),
        ("cifar10-small/cutmix-vit", None, "cifar10-small", "cutmix-vit"),
        ("table4/r18/samix", None, "table4/r18", "samix"),
        ("samix", None, "", "samix"),
        ("ssl-demo/moco-v2", "moco-v2", "ssl-demo/moco-v2", "plain"),
        ("ssl-demo/moco-v2+samix-i", "moco-v2", "ssl-demo/moco-v2", "samix-i"),
        ("ssl-demo/moco-v2+bsim", "moco-v2", "ssl-demo/moco-v2", "bsim"),
        ("mine/samix-i", "moco-v2", "mine", "samix-i"),
    ],
)
def test_value_family_and_row(tmp_path, recipe, method, family, row):
    config = {"mixup": {"name": "cutmix"}} | ({"method": {"name": method}} if method else {})
    assert split_recipe(Run(tmp_path, config, [], {"recipe": recipe})) == (family, row)


@pytest.mark.parametrize("family", [*RECIPES, *PRETRAININGS])
def test_invariant_no_two_rows_of_a_family_share_a_label(tmp_path, family):
    if family in RECIPES:
        found = {f"{family}/{name}": recipe for name, recipe in RECIPES[family].rows.items()}
    else:
        method = PRETRAININGS[family].rows[0].partition("+")[0]
        rows = [*PRETRAININGS[family].rows, *(f"{method}+{name}" for name in PRESETS)]
        found = dict(find_pretraining(f"{family}/{row}") for row in rows)
    runs = [Run(tmp_path, to_dict(recipe), [], {"recipe": name}) for name, recipe in found.items()]
    groups = group_runs(runs)
    assert len({(group.family, group.method) for group in groups}) == len(found) == len(groups)
    assert not any("[" in group.method for group in groups)
    assert family not in RECIPES or {group.family.partition(" [")[0] for group in groups} == {family}


@pytest.mark.parametrize(
    ("recipe", "mixup", "clean_weight", "label"),
    [
        ("demo/mixup", "mixup", 0.0, "mixup"),
        ("demo/mixup", "mixup", 1.0, "mixup + clean"),
        ("demo/mixup-clean", "mixup", 0.5, "mixup + clean"),
        ("demo/mixup-long", "mixup", 0.5, "mixup-long + clean"),
        ("demo/mixup2-clean", "mixup", 1.0, "mixup2 + clean"),
        ("demo/mixup-clean", "mixup", 0.0, "mixup-clean"),
        ("demo/samix", "samix", 1.0, "samix"),
        ("demo/automix", "automix", 1.0, "automix"),
        ("demo/plain", "plain", 1.0, "plain"),
        ("demo/samix-fast", "samix", 1.0, "samix-fast"),
    ],
)
def test_value_label(write_run, recipe, mixup, clean_weight, label):
    assert method_label(read_run(write_run(recipe, mixup, clean_weight=clean_weight))) == label


def test_value_seeds_come_together_in_the_order_of_the_tables(write_run):
    names = ("samix", "zigzag", "automix", "cutmix", "plain", "mixup")
    runs = [read_run(write_run(f"demo/{name}", name, seed)) for seed in (1, 0) for name in names]
    groups = group_runs(runs)
    assert [group.method for group in groups] == ["plain", "mixup", "cutmix", "zigzag", "automix", "samix"]
    assert all([run.seed for run in group.runs] == [0, 1] for group in groups)


def test_value_mixups_that_learn_without_labels_come_last(write_run):
    names = ("samix-c", "zigzag", "samix-i", "mixup")
    settings = {"method": {"name": "moco-v2"}}
    paths = [write_run(f"ssl-demo/moco-v2+{name}", name, settings=settings) for name in names]
    groups = group_runs(map(read_run, paths))
    assert [group.method for group in groups] == ["mixup", "zigzag", "samix-i", "samix-c"]


@pytest.mark.parametrize("name", [*LEARNED, *LEARNED_WITHOUT_LABELS])
def test_invariant_labels_of_learned_mixups_do_not_name_the_clean_branch(write_run, name):
    assert method_label(read_run(write_run(f"demo/{name}", name, clean_weight=1.0))) == name


def test_value_different_settings_are_not_averaged(write_run):
    write = [
        write_run(),
        write_run(folder="again/samix", seed=1, settings={"epochs": 50, "machine": {"threads": 2}}),
        write_run(seed=2, settings={"machine": {"threads": 1}, "eval_every": 2}),
    ]
    groups = group_runs(map(read_run, write))
    assert [group.method for group in groups] == ["samix [epochs 4]", "samix [epochs 50]"]
    assert [[run.seed for run in group.runs] for group in groups] == [[0, 2], [1]]


def test_value_rows_with_one_label_are_told_apart(write_run):
    paths = [
        write_run("demo/mixup", "mixup", 0, clean_weight=1.0),
        write_run("demo/mixup-clean", "mixup", 1, clean_weight=1.0),
    ]
    groups = group_runs(map(read_run, paths))
    assert [group.method for group in groups] == [
        "mixup + clean [row mixup-clean]",
        "mixup + clean [row mixup]",
    ]


def test_value_a_fourth_setting_tells_runs_apart():
    three = {"a": "1", "b": "1", "c": "1"}
    kinds = [
        three | {"d": "1", "e": "1"},
        {"a": "2", "b": "2", "c": "2", "d": "2", "e": "1"},
        three | {"d": "1", "e": "2"},
    ]
    # d splits nothing that a has not split already.
    assert difference_labels(kinds) == [
        " [a 1, b 1, c 1, e 1]",
        " [a 2, b 2, c 2, e 1]",
        " [a 1, b 1, c 1, e 2]",
    ]
    assert difference_labels(kinds[:1]) == [""]


def test_value_what_something_is_comes_before_its_details():
    kinds = [{"mixup.alpha": "1", "mixup.name": "fmix"}, {"mixup.alpha": "2", "mixup.name": "cutmix"}]
    assert difference_labels(kinds, most=1) == [" [mixup.name fmix]", " [mixup.name cutmix]"]


def test_value_a_copy_of_a_run_is_no_second_seed(write_run):
    path = write_run(seed=0)
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    (path / "summary.json").unlink()
    (path / "run.json").write_text(json.dumps({"name": "demo/samix"}))
    (group,) = group_runs(map(read_run, [path, copy, write_run(seed=1)]))
    assert [run.path for run in group.runs] == [copy, path.with_name("1")]  # a finished run goes first
    assert [run.path for run in group.copies] == [path]


@pytest.mark.parametrize("name", LEARNED_ON_MACHINE)
def test_value_what_of_the_machine_is_learned_from_is_not_averaged(write_run, name):
    paths = [write_run(seed=seed, settings={"machine": {name: seed + 1, "threads": seed}}) for seed in (0, 1)]
    labels = [group.method for group in group_runs(map(read_run, paths))]
    assert labels == [f"samix [machine.{name} 1]", f"samix [machine.{name} 2]"]


def with_data(name: str, root: str | None = None, encoder: str = "small-resnet") -> dict:
    return {"data": {"name": name, "root": root}, "encoder": {"name": encoder, "width": 4}}


def test_value_runs_on_other_pictures_or_with_another_network_are_not_compared(write_run):
    paths = [
        write_run("demo/plain", "plain", settings=with_data("synthetic")),
        write_run("demo/samix", "samix", settings=with_data("synthetic")),
        write_run("demo/plain", "plain", folder="b/plain", settings=with_data("folder", "my/birds")),
        write_run(
            "demo/plain", "plain", folder="c/plain", settings=with_data("folder", "/all/my/birds"), seed=1
        ),
        write_run(
            "demo/plain", "plain", folder="d/plain", settings=with_data("synthetic", encoder="resnet18")
        ),
        write_run("demo/plain", "plain", folder="e/plain", settings=with_data("folder", "my/fish")),
    ]
    groups = group_runs(map(read_run, paths))
    assert len({group.family for group in groups}) == 4
    alone = [group for group in groups if "birds" in group.family]
    assert [(group.method, [run.seed for run in group.runs]) for group in alone] == [("plain", [0, 1])]
    assert alone[0].family.startswith("demo [data.name folder, encoder.name small-resnet, data.root birds")
    first = [group.method for group in groups if "synthetic" in group.family and "small" in group.family]
    assert first == ["plain", "samix"]


def test_value_where_a_known_set_lies_does_not_matter(write_run):
    paths = [
        write_run("a/plain", "plain", seed=k, settings=with_data("cifar10", root))
        for k, root in enumerate("xy")
    ]
    (group,) = group_runs(map(read_run, paths))
    assert group.family == "a" and len(group.runs) == 2


def test_value_a_method_without_mixup_is_called_by_its_name(write_run):
    run = read_run(write_run("ssl-demo/byol", "plain", settings={"method": {"name": "byol"}}))
    assert method_label(run) == "byol"
