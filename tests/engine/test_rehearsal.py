"""A rehearsal: two steps of any recipe on made-up pictures."""

from dataclasses import replace

import pytest
import torch

from samix.engine.machine import Machine
from samix.engine.rehearsal import MadeUp, Rehearsal, made_up_split, on_one_device, rehearse
from samix.recipes import find_pretraining, find_recipe


def test_value_hours_are_pictures_times_epochs_at_the_pace():
    found = Rehearsal(batch=4, parameters={}, loss=0.0, seconds=2.0, peak_mb=None)
    assert found.hours(pictures=3600, epochs=10) == pytest.approx(5.0)  # half a second each, 36,000 times


def test_value_made_up_pictures_are_functions_of_their_position():
    pictures = MadeUp(5, 8)
    assert pictures[3].shape == (3, 8, 8) and pictures[3].dtype == torch.uint8
    assert torch.equal(pictures[3], pictures[3]) and not torch.equal(pictures[3], pictures[4])
    assert len(pictures) == 5


def test_value_parameters_are_counted_by_role():
    _, recipe = find_recipe("cifar10-small/samix")
    found = rehearse(recipe, classes=10)
    model = recipe.build(10)
    expected = {role: sum(p.numel() for p in group) for role, group in model.parameter_groups().items()}
    assert found.parameters == expected and set(expected) == {"encoder", "mixer"}
    assert found.batch == 4 and found.seconds > 0 and found.loss > 0


def test_value_weights_are_not_read():
    _, recipe = find_recipe("cifar10-small/plain")
    recipe = replace(recipe, encoder=replace(recipe.encoder, weights="no/such/file.pth"))
    assert rehearse(recipe, classes=10, batch=2).batch == 2


def test_value_clusters_have_pictures_enough():
    _, recipe = find_pretraining("ssl-small/moco-v2+samix-c")
    clusters = recipe.mixup.clusters
    split = made_up_split(
        replace(recipe, mixup=replace(recipe.mixup, clusters=replace(clusters, count=900))), 7
    )
    assert len(split.train.labels) == 900 * (clusters.min_size + 1)
    assert set(rehearse(recipe).parameters) == {"encoder", "mixer", "head"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, where float16 works")
def test_value_a_recipe_for_many_gpus_runs_on_a_cpu():
    machine = Machine(devices=8, nodes=4, precision="16-mixed", compile=True, accumulate=2)
    recipe = on_one_device(
        replace(find_recipe("cifar10-small/plain")[1], batch_size=256, machine=machine), None
    )
    assert (recipe.machine.processes, recipe.machine.precision, recipe.batch_size) == (1, "32-true", 4)


def test_value_groups_of_batch_norm_need_a_picture_each():
    _, recipe = find_pretraining("ssl-small/moco-v2")
    assert on_one_device(replace(recipe, method=replace(recipe.method, norm_groups=8)), None).batch_size == 8
