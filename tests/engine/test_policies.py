"""Every policy of the table trains in the engine, draws its samples and resumes to the same weights."""

import numpy as np
import pytest
import torch

from samix.engine.loop import train
from samix.mixups import MIXUPS
from samix.nn.zoo import Network

ATTENTIVE = ("transmix", "tokenmix", "smmix", "tlalign", "mixpro")


@pytest.mark.slow
@pytest.mark.parametrize("name", MIXUPS)
def test_value_a_policy_trains(name, tiny, tmp_path, weights, short_retention):
    network = Network(name="small-vit", width=2) if name in ATTENTIVE else Network(width=4)
    recipe = tiny("plain", mixup=MIXUPS[name](), encoder=network, epochs=1)
    summary = train(recipe, tmp_path / "run", name=f"tiny/{name}", quiet=True)
    assert 0 <= summary["top1"] <= 100
    with np.load(tmp_path / "run" / "samples.npz") as samples:
        assert samples["mixed"].shape[2:] == (3, 16, 16) and len(samples["lams"]) == len(samples["masks"])
    assert (tmp_path / "run" / "retention.csv").exists() == MIXUPS[name].masks_pairs

    train(recipe, tmp_path / "again", name=f"tiny/{name}", quiet=True)
    first, again = weights(tmp_path / "run"), weights(tmp_path / "again")
    assert all(torch.equal(first[key], again[key]) for key in first)
