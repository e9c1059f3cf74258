"""Datasets by name, subsets of them, and settings that make no sense."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from samix.core.seeds import fold
from samix.data.datasets import Data, ImageSet, balanced_positions, balanced_subset, load_data


def image_set(labels: list[int]) -> ImageSet:
    """Pictures that carry their own position in every pixel."""
    pictures = torch.arange(len(labels), dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 2, 2)
    return ImageSet(pictures, torch.tensor(labels), ("a", "b", "c"))


@given(st.integers(1, 12), st.integers(0, 20))
def test_invariant_subsets_are_balanced_and_keep_labels_with_pictures(count, seed):
    images = image_set([0] * 4 + [1] * 5 + [2] * 6)
    kept = balanced_subset(images, count, seed, "train")
    assert len(kept.labels) == len(kept.pictures) == count
    numbers = kept.labels.bincount(minlength=3)
    assert numbers.max() - numbers.min() <= 1
    positions = [int(picture[0, 0, 0]) for picture in kept.pictures]
    assert len(set(positions)) == count
    assert [int(images.labels[p]) for p in positions] == kept.labels.tolist()


def test_value_subsets_follow_their_seed():
    images = image_set([0] * 20 + [1] * 20)
    first, again = (balanced_subset(images, 10, 0, "train") for _ in range(2))
    assert torch.equal(first.pictures, again.pictures)
    assert not torch.equal(first.pictures, balanced_subset(images, 10, 1, "train").pictures)
    assert not torch.equal(first.pictures, balanced_subset(images, 10, 0, "test").pictures)


def test_value_a_subset_of_a_list_is_the_subset_of_its_tensor():
    images = image_set([0, 1, 2] * 4)
    as_list = images._replace(pictures=list(images.pictures))
    kept, kept_list = (balanced_subset(i, 5, 3, "train") for i in (images, as_list))
    assert torch.equal(torch.stack(list(kept_list.pictures)), kept.pictures)


def slow_positions(labels: list[int], count: int, order: list[int]) -> list[int]:
    """Round after round, one picture of every class that has one left, in the drawn order."""
    chosen: list[int] = []
    while len(chosen) < count:
        seen: set[int] = set()
        for position in order:
            if position not in chosen and labels[position] not in seen:
                seen.add(labels[position])
                chosen.append(position)
    return chosen[:count]


@given(st.lists(st.sampled_from([0, 1, 3]), min_size=1, max_size=25), st.integers(0, 9), st.data())
def test_value_positions_equal_a_slow_loop(labels, seed, data):
    count = data.draw(st.integers(1, len(labels)))
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(fold(seed, "train"))).tolist()
    found = balanced_positions(torch.tensor(labels), count, seed, "train").tolist()
    assert found == slow_positions(labels, count, order)


def test_value_no_count_keeps_the_set():
    images = image_set([0, 1, 2])
    assert balanced_subset(images, None, 0, "train") is images


def test_error_more_pictures_than_there_are():
    with pytest.raises(ValueError, match="data.test_pictures is 9, but the set has only 3"):
        balanced_subset(image_set([0, 1, 2]), 9, 0, "test")


def test_value_synthetic():
    split = load_data(Data(size=16, train_pictures=24, test_pictures=12))
    assert split.train.pictures.shape == (24, 3, 16, 16) and split.test.pictures.shape == (12, 3, 16, 16)
    assert split.train.labels.bincount().tolist() == [2] * 12
    again = load_data(Data(size=16, train_pictures=24, test_pictures=12))
    assert torch.equal(split.train.pictures, again.train.pictures)
    assert not torch.equal(split.train.pictures[:12], split.test.pictures)
    other = load_data(Data(size=16, train_pictures=24, test_pictures=12, subset_seed=1))
    assert not torch.equal(split.train.pictures, other.train.pictures)


def test_value_digits():
    from sklearn.datasets import load_digits

    split = load_data(Data(name="digits", size=16, train_pictures=100))
    assert split.train.pictures.shape == (100, 3, 16, 16) and split.test.pictures.shape == (450, 3, 16, 16)
    assert split.train.labels.bincount().tolist() == [10] * 10
    known = {tuple((image * (255 / 16)).round().astype(int).flatten()) for image in load_digits().images}
    shown = split.train.pictures[:, :, ::2, ::2]
    assert all(tuple(picture[0].flatten().tolist()) in known for picture in shown)
    assert torch.equal(shown[:, 0], shown[:, 2])


def test_value_digits_do_not_test_on_training_pictures():
    split = load_data(Data(name="digits", size=8, view="none"))
    train, test = ({p.numpy().tobytes() for p in part.pictures} for part in (split.train, split.test))
    assert len(split.train.labels) + len(split.test.labels) == 1797
    assert not train & test


@pytest.mark.parametrize(
    ("name", "fields", "train", "test"),
    [
        ("synthetic", {"size": 8}, 10_000, 2_000),
        ("synthetic", {"size": 16, "train_pictures": 25, "test_pictures": 13}, 25, 13),
        ("digits", {}, 1347, 450),
        ("digits", {"train_pictures": 33, "test_pictures": 17}, 33, 17),
        ("folder", {}, 4, 2),
        ("folder", {"train_pictures": 3}, 3, 2),
        ("pictures", {}, 6, 6),
        ("pictures", {"train_pictures": 5, "test_pictures": 2}, 5, 2),
        ("tiny-imagenet", {}, 2, 3),
        ("tiny-imagenet", {"test_pictures": 2}, 2, 2),
    ],
)
def test_value_labels_count_the_pictures_in_use(request, name, fields, train, test):
    fixtures = {"folder": "folder", "pictures": "folder", "tiny-imagenet": "tiny_imagenet"}
    root = request.getfixturevalue(fixtures[name]) if name in fixtures else None
    place = root.parent if name == "tiny-imagenet" else root
    split = load_data(Data(name=name, root=None if place is None else str(place), **fields))
    assert len(split.train.labels) == len(split.train.pictures) == train
    assert len(split.test.labels) == len(split.test.pictures) == test


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "cifar-10"}, r"unknown dataset 'cifar-10'. Did you mean 'cifar10'\?"),
        ({"size": 4}, "data.size must be at least 8, got 4"),
        ({"train_pictures": 0}, r"data.train_pictures must be at least 2 \(a pair\), or null for all, got 0"),
        ({"test_resize": 16}, r"data.test_resize must be at least data.size \(32\).* got 16"),
        ({"test_pictures": 1}, "data.test_pictures must be at least 2"),
        ({"view": "crop"}, r"unknown data\.view 'crop'. Did you mean 'crop-flip'\?"),
        ({"min_scale": 0.0}, r"data.min_scale must lie in \(0, 1\]"),
        ({"workers": -1}, "data.workers must not be negative"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_error_settings(fields, words, unchecked_shapes):
    with pytest.raises(ValueError, match=words):
        Data(**fields)
