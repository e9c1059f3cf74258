"""One tree of class folders: what is split off to test on, and which trees are refused."""

from collections import Counter

import pytest
import torch

from samix.data.datasets import Data, load_data
from samix.data.trees import split_off


@pytest.fixture
def tree(write, tmp_path):
    """Ten cats, five dogs, one yak, each picture of a shade of its own."""
    shade = 0
    for name, count in (("cat", 10), ("dog", 5), ("yak", 1)):
        for number in range(count):
            write(f"{name}/{number}.png", shade)
            shade += 1
    return tmp_path


def test_value_a_fifth_of_every_class_is_tested_on(tree):
    split = load_data(Data(name="folder", root=str(tree), size=16))
    assert split.train.classes == split.test.classes == ("cat", "dog", "yak")
    assert Counter(split.train.labels.tolist()) == {0: 8, 1: 4, 2: 1}
    assert Counter(split.test.labels.tolist()) == {0: 2, 1: 1}
    shades = [set(part.pictures[:, 0, 0, 0].tolist()) for part in (split.train, split.test)]
    assert not shades[0] & shades[1] and shades[0] | shades[1] == set(range(16))


def test_invariant_the_split_is_the_same_whatever_the_seed_of_a_subset(tree):
    tests = [load_data(Data(name="folder", root=str(tree), subset_seed=seed)).test for seed in (0, 1)]
    assert torch.equal(tests[0].pictures, tests[1].pictures)


def test_value_split_off_keeps_one_of_every_class_to_learn_from():
    labels = torch.tensor([0] * 2 + [1] * 3 + [2] + [3] * 20)
    train, val = split_off(labels)
    assert sorted([*train.tolist(), *val.tolist()]) == list(range(len(labels)))
    assert labels[val].bincount(minlength=4).tolist() == [1, 1, 0, 4]
    assert train.tolist() == sorted(train.tolist()) and val.tolist() == sorted(val.tolist())


def test_value_unreadable_files_are_not_split(tree):
    (tree / "yak" / "bad.png").write_bytes(b"no picture")
    with pytest.warns(UserWarning, match=r"left out 1 picture file .*bad\.png"):
        split = load_data(Data(name="folder", root=str(tree)))
    assert Counter(split.train.labels.tolist()) == {0: 8, 1: 4, 2: 1}


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ([], r"has no pictures and no class folders. Make one folder per class"),
        (["a.png", "b.png"], r"has pictures, but no class folders. .*samix pretrain ssl-folder"),
        (["cat/a.png", "cat/b.png"], r"has one class folder only, 'cat': nothing to tell apart"),
        (
            ["cat/a.png", "dog/b.png"],
            r"has 2 pictures in 2 classes, one each, so that none is left",
        ),
        (["all/cat/a.png", "all/dog/a.png"], r"folders of them \(cat, dog\). .*--data.root .*/all\."),
        (
            ["cat/a.png", "dog/x/a.png", "dog/y/a.png"],
            r"dog has no pictures of its own but .*\(x, y\)",
        ),
        (["cat/a.png", "dog/notes.txt"], r"class folder .*dog has no picture"),
    ],
    ids=["empty", "no classes", "one class", "one picture each", "nested", "one nested", "empty class"],
)
def test_error_trees_that_cannot_be_learned_from(write, tmp_path, files, text):
    for file in files:
        if file.endswith(".txt"):
            (tmp_path / file).parent.mkdir()
            (tmp_path / file).write_text("nothing")
        else:
            write(file)
    with pytest.raises(ValueError, match=text):
        load_data(Data(name="folder", root=str(tmp_path)))


def test_value_pictures_may_lie_in_one_folder_of_their_class(write, tmp_path):
    for name in ("cat", "dog"):
        for number in range(3):
            write(f"{name}/images/{number}.png")
    assert len(load_data(Data(name="folder", root=str(tmp_path))).train.labels) == 4


def test_error_fewer_pictures_than_classes(tree):
    with pytest.raises(ValueError, match=r"data.train_pictures is 2, fewer than the 3 classes"):
        load_data(Data(name="folder", root=str(tree), train_pictures=2))
