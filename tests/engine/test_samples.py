"""Arrays for the report: pictures of different classes, masks, what the Mixer looks at."""

import csv

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.pairing import Pairing
from samix.data.datasets import load_data
from samix.engine.samples import one_of_each_class, write_retention, write_samples

PAIRING = Pairing(torch.tensor([0.3]), torch.tensor([1, 2, 3, 0]))
Y = torch.tensor([0, 1, 2, 3])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 10))
def test_invariant_classes_come_in_turn(labels, count):
    chosen = one_of_each_class(torch.tensor(labels), count).tolist()
    assert len(chosen) == len(set(chosen)) == min(count, len(labels))
    kinds = len(set(labels))
    first = [labels[i] for i in chosen[:kinds]]
    assert len(set(first)) == len(first)


def test_value_mix_images_by_policy(tiny):
    x = torch.randn(4, 3, 16, 16)
    assert tiny("plain").build(12).picture(x, Y, PAIRING) is None
    mixed = tiny("mixup").build(12).picture(x, Y, PAIRING)
    torch.testing.assert_close(mixed.x, 0.3 * x + 0.7 * x[PAIRING.index])


def test_value_mixing_for_a_picture_leaves_the_model_alone(tiny):
    model = tiny().build(12).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    mixed = model.picture(torch.randn(4, 3, 16, 16), Y, PAIRING)
    assert model.training and model.mixer.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert mixed.mask.mean(dim=(1, 2, 3)).tolist() == pytest.approx([0.3] * 4, abs=0.01)


def test_value_attention_and_content(tiny, tmp_path):
    recipe = tiny()
    write_samples(tmp_path, recipe, recipe.build(12), load_data(recipe.data))
    with np.load(tmp_path / "samples.npz") as arrays:
        assert arrays["content"].shape == arrays["attention"].shape == (6, 4, 4)
        np.testing.assert_allclose(arrays["attention"].sum(axis=(1, 2)), 1, rtol=1e-4)
        for first, partner in zip(arrays["first"], arrays["partner"], strict=True):
            assert not np.array_equal(first, partner)


@pytest.mark.parametrize("policy", ["mixup", "cutmix", "samix"])
def test_value_retention(policy, tiny, tmp_path):
    recipe = tiny(policy)
    write_retention(tmp_path, recipe, recipe.build(12), load_data(recipe.data), count=24)
    with (tmp_path / "retention.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert [float(row["lam"]) for row in rows] == pytest.approx(np.linspace(0, 1, 11))
    again = tmp_path / "again"
    again.mkdir()
    write_retention(again, recipe, recipe.build(12), load_data(recipe.data), count=24)
    if policy != "samix":
        assert (again / "retention.csv").read_text() == (tmp_path / "retention.csv").read_text()


def test_value_no_retention_where_masks_are_unknown(tiny, tmp_path):
    from samix.data.datasets import Data

    recipe = tiny("mixup", data=Data(name="digits", size=16))
    write_retention(tmp_path, recipe, recipe.build(10), load_data(recipe.data))
    write_retention(tmp_path, tiny("plain"), tiny("plain").build(12), load_data(tiny("plain").data))
    assert list(tmp_path.iterdir()) == []
