"""What the engine sees of a model."""

import torch

from samix.contract import Losses
from samix.engine.step import mean_losses


def test_value_total_adds_what_is_there():
    encoder, mixer = torch.tensor(2.0), torch.tensor(0.5)
    assert Losses(encoder).total is encoder
    assert float(Losses(encoder, mixer).total) == 2.5


def test_value_parts_without_a_mixer_loss_do_not_dilute_it():
    encoder, mixer = torch.tensor(2.0), torch.tensor(0.5)
    parts = [(Losses(encoder, mixer), 0.25), (Losses(encoder), 0.25), (Losses(encoder, mixer), 0.5)]
    mean = mean_losses(parts)
    assert float(mean.encoder) == 2.0
    assert float(mean.mixer) == 0.5
