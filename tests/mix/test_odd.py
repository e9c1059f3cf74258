"""Odd inputs and arguments of `Mix`: each is refused in a sentence of samix's own that names the argument."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torchvision import tv_tensors

from samix import CutMix, Mix

NAN, INF = math.nan, math.inf
X, Y = torch.rand(9, 3, 12, 12), torch.arange(9)
ROWS = F.one_hot(Y, 10)
BOXES = tv_tensors.BoundingBoxes(torch.rand(9, 4), format="XYXY", canvas_size=(12, 12))

IMAGES = {
    "NumPy": (X.numpy(), r"got ndarray\. Write torch\.from_numpy\(x\)"),
    "list of pictures": (list(X), r"got list\. Write torch\.stack\(x\)"),
    "list of Pillow's": ([Image.new("RGB", (8, 8))] * 9, r"got list\. Write torch\.stack\(x\)"),
    "Pillow's": (Image.new("RGB", (8, 8)), r"got Image\. Write torchvision.*to_image"),
    "nothing": (None, "got NoneType"),
    "bytes": ((X * 255).byte(), r"torch\.uint8\. Write x\.float\(\) / 255"),
    "bytes of torchvision": (tv_tensors.Image((X * 255).byte()), r"torch\.uint8\. Write x\.float\(\) / 255"),
    "video of bytes": (
        tv_tensors.Video(torch.zeros(9, 4, 3, 8, 8).byte()),
        r"torch\.uint8\. Write x\.float\(\) / 255",
    ),
    "whole numbers": ((X * 255).long(), r"torch\.int64"),
    "truth values": (X > 0.5, r"torch\.bool"),
    "complex": (X.to(torch.complex64), r"torch\.complex64"),
    "sparse": (X.to_sparse(), r"got a sparse .*Write x\.to_dense\(\)"),
    "nested": (torch.nested.nested_tensor([torch.rand(3, 4, 4)] * 9), "got a nested one"),
    "no picture": (X[:0], r"at least one picture, channel and pixel; got \[0, 3, 12, 12\]"),
    "no channel": (X[:, :0], r"at least one picture, channel and pixel; got \[9, 0, 12, 12\]"),
    "no row": (X[:, :, :0], r"at least one picture, channel and pixel; got \[9, 3, 0, 12\]"),
    "one picture": (X[0], r"\[B, C, H, W\]; got \[3, 12, 12\]"),
    "six axes": (X[None, None], r"\[B, C, H, W\]; got \[1, 1, 9, 3, 12, 12\]"),
    "channels last": (X.permute(0, 2, 3, 1), r"channels in front.*Write x\.permute\(0, 3, 1, 2\)"),
    "mask": (tv_tensors.Mask(X), r"or a tv_tensors\.Image; got Mask"),
    "boxes": (BOXES, r"or a tv_tensors\.Image; got BoundingBoxes"),
}
LABELS = {
    "text": ("cat", "labels must be tensors; got str"),
    "list": (list(range(9)), r"labels must be tensors; got int\. Write torch\.as_tensor\(y\)"),
    "NumPy": (Y.numpy(), r"got ndarray\. Write torch\.as_tensor\(y\)"),
    "number": (3, r"got int\. Write torch\.as_tensor\(y\)"),
    "empty tuple": ((), "got an empty tuple"),
    "empty dictionary": ({}, "got an empty dict"),
    "dictionary of text": ({"a": "x"}, "labels must be tensors; got str"),
    "scalar": (torch.tensor(3), "9 images but no labels"),
    "too few": (Y[:2], "9 images but 2 labels"),
    "column": (Y[:, None], r"got \[9, 1\].*Call y\.squeeze\(1\)"),
    "narrow rows": (ROWS[:, :4], r"\[B, 10\] \(soft labels\); got \[9, 4\]"),
    "three axes": (torch.zeros(9, 2, 2).long(), r"got \[9, 2, 2\]"),
    "negative": (Y - 1, "label -1 at position 0"),
    "too large": (Y + 5, "label 10 at position 5"),
    "floats": (Y.float(), r"float labels \[9\] are numbers to regress"),
    "complex": (ROWS.to(torch.complex64), "labels must be whole or real numbers; got torch.complex64"),
    "sparse": (ROWS.to_sparse(), "labels must be whole or real numbers; got .*sparse"),
    "boxes": (BOXES, r"\[B, 10\] \(soft labels\); got \[9, 4\]"),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_error_odd_images(unchecked_shapes, kind):
    x, message = IMAGES[kind]
    for given in ((x, Y), ([x, Y],), ({"image": x, "label": Y},)):
        with pytest.raises(ValueError, match=f"images must .*{message}"):
            Mix("cutmix", 10)(*given)


@pytest.mark.parametrize("kind", LABELS)
def test_error_odd_labels(unchecked_shapes, kind):
    y, message = LABELS[kind]
    for given in ((X, y), ((X, y),), ({"image": X, "label": y},)):
        with pytest.raises(ValueError, match=message):
            Mix("mixup", 10)(*given)


@pytest.mark.parametrize("given", [X, tv_tensors.Mask(X), BOXES, Image.new("RGB", (8, 8)), "words", 3, [X]])
def test_error_images_alone(unchecked_shapes, given):
    with pytest.raises(
        ValueError, match=rf"call mix\(x, y\), mix\(\[x, y\]\).*got {type(given).__name__} alone"
    ):
        Mix("mixup", 10)(given)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_value_class_indices_of_any_width(dtype):
    rows = Mix("mixup", 10, prob=0.0)(X, Y.to(dtype))[1]
    assert torch.equal(rows, ROWS.float())


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float64])
def test_value_one_hot_rows_of_any_type(dtype):
    assert torch.equal(Mix("mixup", 10, prob=0.0)(X, ROWS.to(dtype))[1], ROWS.float())


def test_value_maps_of_torchvision_keep_their_type():
    maps = tv_tensors.Mask((X[:, 0] > 0.5).long())
    mix = Mix("cutmix", generator=torch.Generator().manual_seed(1))
    mixed = mix(X, maps)[1]
    assert type(mixed) is tv_tensors.Mask and mixed.dtype == torch.int64
    again = Mix("cutmix", generator=torch.Generator().manual_seed(1)).mixed(X, maps)
    assert torch.equal(mixed.as_subclass(torch.Tensor), again.dense((X[:, 0] > 0.5).long()))


# argument: values and the words with which each is refused
ARGUMENTS: dict[str, list[tuple[Any, str]]] = {
    "policy": [
        *(
            (value, "a policy is a name or a samix.Policy; got ")
            for value in (None, 3, b"mixup", object, CutMix)
        ),
        *(([value], "a policy is a name or a samix.Policy; got ") for value in (None, ["mixup"], 3)),
        ("", "unknown mixup ''"),
        ("CUTMIX", "unknown mixup 'CUTMIX'"),
        ("samix", "'samix' learns its masks"),
        ("samix-p", r"'samix-p' is a trained Mixer: Mix\(samix.load_mixer"),
        ([], "name at least one policy"),
        *(
            ({"mixup": share}, "probabilities must be 0 or more")
            for share in ("x", None, NAN, INF, True, -1, 0)
        ),
        ({"mixup": 1e308, "cutmix": 1e308}, "probabilities must be 0 or more"),
        ({3: 1.0}, "a policy is a name or a samix.Policy; got 3"),
        ({}, "probabilities must be 0 or more"),
    ],
    "alpha": [
        *(
            (value, "mixup.alpha must be positive, got ")
            for value in ("x", NAN, INF, -1, 0, [1.0], (1.0, 2.0), "")
        ),
        (1e-300, "mixup.alpha must be at least 0.01"),
    ],
    "classes": [
        (value, "classes must be a whole number of at least 1, got ")
        for value in (
            "10",
            2.5,
            0,
            -3,
            True,
            NAN,
            INF,
            [],
            {},
            (3, 0),
            {"a": "b"},
            2**31,
            10**30,
            torch.tensor(10),
        )
    ],
    "prob": [
        (value, r"prob must lie in \[0, 1\], got ") for value in (None, "1", True, -0.1, 1.1, NAN, [0.5])
    ],
    "mode": [(value, "unknown mode ") for value in (None, 3, [], {}, "", "BATCH", "image")],
    "correct_lam": [(value, "correct_lam must be True or False, got ") for value in (None, 1, "yes")],
    "smoothing": [
        (value, r"smoothing must lie in \[0, 1\), got ") for value in (None, "x", True, 1.0, -0.1, NAN)
    ],
    "off_epoch": [(value, "off_epoch must be a whole number") for value in (-1, 1.5, True, NAN, "3")],
    "generator": [
        (value, "generator must be a torch.Generator on the CPU, got ")
        for value in (3, torch.Generator, np.random.default_rng(), "0")
    ],
    "model": [(value, "model must be a network") for value in ("resnet18", nn.Flatten, print, 3)],
    "teacher": [(value, "teacher must be a network") for value in ("resnet18", nn.Flatten, print, 3)],
    "layer": [(value, "layer must be a name such as 'layer4', got ") for value in (3, ["a"], nn.Flatten())],
    "keys": [
        (value, "keys must name images and labels")
        for value in ((), "image", ["image"], [1, 2], ("a", "a"), {"a": 1, "b": 2}, 3)
    ],
    "per_frame": [(value, "per_frame must be True or False, got ") for value in (None, 1, "yes")],
}
CASES = [(name, value, words) for name, values in ARGUMENTS.items() for value, words in values]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    CASES,
    ids=[f"{name}={value!r}".partition(" at 0x")[0] for name, value, _ in CASES],
)
def test_error_odd_arguments(unchecked_shapes, name, value, words):
    with pytest.raises(ValueError, match=words):
        Mix(**{"policy": "mixup", name: value})


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        (0.5, 0.5),
        ("abc", "abc"),
        ([None], [1]),
        ([[0.5]], [[0.5]]),
        ([0.5], None),
        ([], []),
        ([0.5], [0.5, 0.5]),
    ]
    + [([value], [1.0]) for value in (NAN, INF)]
    + [([0.5], [value]) for value in (0.0, -1.0, NAN, INF)],
)
def test_error_odd_normalisation(unchecked_shapes, mean, std):
    with pytest.raises(
        ValueError, match=r"mean and std (have one|belong)|mean must be finite and std positive"
    ):
        Mix("mixup", mean=mean, std=std)


@pytest.mark.parametrize(
    ("name", "value"),
    [("alpha", "x"), ("alpha", None), ("prob", "x"), ("box", 3), ("minmax", 3), ("minmax", "ab")],
)
def test_error_odd_settings_of_a_policy(unchecked_shapes, name, value):
    with pytest.raises(ValueError, match=rf"mixup\.{name}.*{value!r}"):
        CutMix(**{name: value})


def test_value_odd_things_that_are_fine(unchecked_shapes):
    """NumPy's numbers, statistics in tensors, a policy that is never drawn."""
    for options in (
        {"classes": np.int64(10)},
        {"prob": np.float32(0.5)},
        {"mean": np.array([0.5] * 3), "std": torch.tensor([0.5] * 3)},
        {"smoothing": 0},
        {"policy": {"mixup": 0, "cutmix": 2}},
    ):
        x, rows = Mix(**{"policy": "mixup", "classes": 10, **options})(X, Y)
        assert x.isfinite().all() and rows.sum(dim=1).allclose(torch.ones(9))
