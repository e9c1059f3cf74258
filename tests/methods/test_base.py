"""What the engine sees of a model."""

import torch

from samix.methods.base import Losses


def test_value_total_adds_what_is_there():
    encoder, mixer = torch.tensor(2.0), torch.tensor(0.5)
    assert Losses(encoder).total is encoder
    assert float(Losses(encoder, mixer).total) == 2.5
