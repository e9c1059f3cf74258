"""Features: in order, as in evaluation, and the encoder is left as it was."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from samix.data import views
from samix.data.datasets import Data, load_data
from samix.evaluate.features import extract, features_of
from samix.nn.zoo import build_encoder

DATA = Data(size=16, train_pictures=24, test_pictures=13)


@pytest.fixture
def encoder():
    """In training mode, apart from one module."""
    encoder = build_encoder("small-resnet", width=4).train()
    encoder.network.layer1.eval()
    return encoder


def state(encoder: nn.Module):
    return {name: value.clone() for name, value in encoder.state_dict().items()}


def test_value_batches_in_their_order(encoder):
    x, y = torch.randn(7, 3, 16, 16), torch.arange(7)
    features, labels = extract(encoder, zip(x.split(3), y.split(3), strict=True))
    assert torch.equal(labels, y)
    with torch.no_grad():
        assert_close(features, encoder.eval()(x))
    assert not features.requires_grad and features.dtype == torch.float32


@pytest.mark.parametrize("batch", [1, 5, 250])
def test_value_every_picture_of_a_set(encoder, batch):
    split = load_data(DATA)
    features, labels = features_of(encoder, split.test, views.test_view(DATA), split.stats, batch=batch)
    assert torch.equal(labels, split.test.labels)
    with torch.no_grad():
        expected = encoder.eval()(views.normalize(split.test.pictures, *split.stats))
    assert_close(features, expected)


def test_invariant_encoder_is_untouched(encoder):
    split, before = load_data(DATA), state(encoder)
    modes = [module.training for module in encoder.modules()]
    features_of(encoder, split.train, views.test_view(DATA), split.stats)
    assert [module.training for module in encoder.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_invariant_modes_come_back_after_an_error(encoder):
    modes = [module.training for module in encoder.modules()]
    with pytest.raises(KeyError):
        extract(encoder, ({}[number] for number in range(2)))
    assert [module.training for module in encoder.modules()] == modes
    assert torch.is_grad_enabled() and all(p.requires_grad for p in encoder.parameters())


def test_error_no_batches(encoder):
    with pytest.raises(ValueError, match="no batches"):
        extract(encoder, [])
