"""Data: sets of pictures, views of them, and batches that depend on nothing but seed and step.

For example:

    data = Data(name="digits")
    split = load_data(data)
    plan = TrainPlan(len(split.train.labels), batch=100, epochs=10)
    for pictures, labels in make_loader(split.train, train_view(data), plan):
        images = normalize(pictures, *split.stats)
"""

from samix.data.datasets import (
    CIFAR_STATS,
    DATASETS,
    IMAGENET_STATS,
    Data,
    ImageSet,
    Pictures,
    Split,
    ViewName,
    load_data,
)
from samix.data.folders import LazyPictures, read_picture
from samix.data.loaders import Batch, TestPlan, TrainPlan, make_loader
from samix.data.official import OFFICIAL, Official
from samix.data.packs import Packed
from samix.data.shards import Shards
from samix.data.ssl_views import AUGMENTS, Augment, two_views
from samix.data.synthetic import Drawn, draw_pictures
from samix.data.views import View, denormalize, normalize, test_view, train_view

__all__ = [
    "AUGMENTS",
    "CIFAR_STATS",
    "DATASETS",
    "IMAGENET_STATS",
    "OFFICIAL",
    "Augment",
    "Batch",
    "Data",
    "Drawn",
    "ImageSet",
    "LazyPictures",
    "Official",
    "Packed",
    "Pictures",
    "Shards",
    "Split",
    "TestPlan",
    "TrainPlan",
    "View",
    "ViewName",
    "denormalize",
    "draw_pictures",
    "load_data",
    "make_loader",
    "normalize",
    "read_picture",
    "test_view",
    "train_view",
    "two_views",
]
