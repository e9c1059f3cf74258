"""Names that live on the package."""

import torch

from samix import data


def test_value_every_public_name_is_there():
    assert all(hasattr(data, name) for name in data.__all__)


def test_value_the_example_of_the_package():
    settings = data.Data(name="digits", size=8, train_pictures=20)
    split = data.load_data(settings)
    plan = data.TrainPlan(len(split.train.labels), batch=10, epochs=2)
    batches = list(data.make_loader(split.train, data.train_view(settings), plan))
    assert len(batches) == 4
    images = data.normalize(batches[0].pictures, *split.stats)
    assert torch.equal(data.denormalize(images, *split.stats), batches[0].pictures)
