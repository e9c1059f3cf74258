"""Odd networks, settings and batches of `SAMix.wrap`: each is refused by the argument's name."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix import CutMix, LearnedMixup, SAMix
from samix.learned import MixerConfig

CLASSES = 5
X, Y = torch.rand(4, 3, 16, 16), torch.arange(4)


def classifier() -> nn.Sequential:
    """A network of five layers, named 0 to 4."""
    pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.ReLU(), *pool, nn.Linear(8, CLASSES))


def wrap(
    network: Any = None, layer: Any = "1", classes: Any = CLASSES, *settings: Any, **options: Any
) -> SAMix:
    """A small model with whatever is odd in it."""
    network = classifier() if network is None else network
    return SAMix.wrap(network, layer, classes, *settings, **({"size": 16} | options))


class Odd(nn.Module):
    """A classifier whose output is something else."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.inner, self.kind = classifier(), kind

    def forward(self, x: Tensor) -> Any:
        logits = self.inner(x)
        return {"tuple": (logits, 1), "dict": {"out": logits}, "nothing": None, "maps": logits[:, :, None]}[
            self.kind
        ]


class Demanding(Odd):
    """A classifier that needs more than pictures."""

    def forward(self, x: Tensor, text: Tensor) -> Tensor:  # type: ignore[override]
        return self.inner(x)


@pytest.mark.parametrize("kind", ["tuple", "dict", "nothing", "maps"])
def test_error_networks_that_give_no_logits(kind):
    with pytest.raises(ValueError, match=r"must give one row per picture, a tensor \[B, K\]; got"):
        wrap(Odd(kind), "inner.1")


def test_error_networks_that_cannot_run_a_picture(unchecked_shapes):
    with pytest.raises(ValueError, match=r"cannot run a picture \[1, 3, 16, 16\]: .*missing .*'text'"):
        wrap(Demanding(""), "inner.1")
    with pytest.raises(ValueError, match="the network must be an nn.Module; got type"):
        wrap(nn.Flatten)


# argument: values and the words with which each is refused
ARGUMENTS: dict[str, list[tuple[Any, str]]] = {
    "layer": [
        *((value, "a layer is a name such as 'layer4', got ") for value in (None, 3, ["1"], nn.Flatten())),
        *((value, f"the network has no layer '{value}'") for value in ("", "9", "1.2")),
        *((value, "the Mixer needs a layer with a spatial map") for value in ("3", "4")),
    ],
    "classes": [
        (value, "the network gives 5 logits, but there are ")
        for value in (7, 3, 0, -1, "5", None, math.nan, [5], 10**12, True)
    ],
    "size": [
        (value, r"size must be a side in pixels, or height and width.*got ")
        for value in (
            0,
            -1,
            None,
            "16",
            1.5,
            math.nan,
            True,
            10**6,
            (16,),
            (16, 16, 16),
            (0, 16),
            (16, "a"),
            {},
        )
    ]
    + [(3, r"cannot run a picture \[1, 3, 3, 3\].*need size=")],
    "channels_last": [(True, "for a square picture: if its maps are")],
    "prefix_tokens": [(value, "prefix_tokens must be a whole number") for value in (-1, "1", 1.5, True)],
    "norm": [("zz", "the network has no layer 'zz'"), (3, "a layer is a name")],
    "head": [
        ("zz", "the network has no layer 'zz'"),
        (3, "a layer is a name"),
        ("0", r"its head '0' must be given one row per picture"),
    ],
    "objective": [
        (value, r"objective must be samix.Objective\(...\), got ") for value in (3, "x", MixerConfig())
    ],
    "settings": [
        (value, r"settings must be samix.LearnedMixup\(...\), got ")
        for value in (3, "samix", LearnedMixup, CutMix())
    ],
}
CASES = [(name, value, words) for name, values in ARGUMENTS.items() for value, words in values]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    CASES,
    ids=[f"{name}={value!r}".partition(" at 0x")[0] for name, value, _ in CASES],
)
def test_error_odd_arguments(unchecked_shapes, name, value, words):
    with pytest.raises(ValueError, match=words):
        wrap(**{name: value})


@pytest.mark.parametrize("value", ["x", 3, None, LearnedMixup])
@pytest.mark.parametrize("group", ["mixer", "mask", "adjusting", "copy", "speed"])
def test_error_groups_of_settings_of_another_kind(unchecked_shapes, group, value):
    with pytest.raises(ValueError, match=rf"mixup\.{group} must be a \w+\(\.\.\.\), got "):
        LearnedMixup(**{group: value})


@pytest.mark.parametrize("value", ["x", math.nan, [1.0], -1])
@pytest.mark.parametrize("name", ["alpha", "eta", "local"])
def test_error_numbers_of_the_settings(unchecked_shapes, name, value):
    with pytest.raises(ValueError, match=rf"mixup\.{name} must .*, got "):
        LearnedMixup(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", "x"), ("gamma", 2), ("encoding", 3), ("reduction", 0), ("reduction", 1.5), ("reduction", "2")],
)
def test_error_settings_of_the_mixer(unchecked_shapes, name, value):
    with pytest.raises(ValueError, match=rf"mixer\.{name} .*{value!r}"):
        MixerConfig(**{name: value})


BATCHES = {
    "labels in a list": (X, [0, 1, 2, 3], r"labels must be a tensor; got list\. Write torch\.as_tensor\(y\)"),
    "labels of NumPy": (X, Y.numpy(), r"labels must be a tensor; got ndarray"),
    "pictures of NumPy": (X.numpy(), Y, r"got ndarray\. Write torch\.from_numpy\(x\)"),
    "bytes": ((X * 255).byte(), Y, r"Write x\.float\(\) / 255"),
    "channels last": (X.permute(0, 2, 3, 1), Y, r"Write x\.permute\(0, 3, 1, 2\)"),
    "sparse pictures": (X.to_sparse(), Y, r"Write x\.to_dense\(\)"),
    "no picture": (X[:0], Y[:0], "at least one picture"),
    "nothing": (None, Y, "got NoneType"),
    "one picture": (X[0], Y, r"got \[3, 16, 16\]"),
    "clips": (X[None], Y, r"got \[1, 4, 3, 16, 16\]"),
    "labels too large": (X, Y + 5, "label 5 at position 0"),
    "labels below 0": (X, Y - 1, "label -1 at position 0"),
    "a column": (X, Y[:, None], r"Call y\.squeeze\(1\)"),
    "too few labels": (X, Y[:3], r"shape \[4\] for 4 images; got \[3\]"),
    "float labels": (X, Y.float(), r"class indices.*torch\.float32"),
    "complex labels": (X, Y.to(torch.complex64), r"class indices.*torch\.complex64"),
    "narrow rows": (X, torch.rand(4, 3), r"got \[4, 3\]"),
    "a picture of NaN": (
        X.index_fill(0, torch.tensor([2]), math.nan),
        Y,
        "values at position 2 of the batch",
    ),
    "an infinite pixel": (
        X.masked_fill(X[1].max() == X, math.inf),
        Y,
        "values at position 1 of the batch",
    ),
}


@pytest.fixture(scope="module")
def model() -> SAMix:
    return wrap()


@pytest.mark.parametrize("kind", BATCHES)
def test_error_odd_batches(unchecked_shapes, model, kind):
    x, y, words = BATCHES[kind]
    with pytest.raises(ValueError, match=words):
        model(x, y, 0.5)


@pytest.mark.parametrize("progress", [math.nan, "0", None, 2.0, -1.0, 30])
def test_error_odd_progress(unchecked_shapes, model, progress):
    with pytest.raises(
        ValueError, match=r"progress is the share of training done, step / total in \[0, 1\]; got "
    ):
        model(X, Y, progress)


@pytest.mark.parametrize(
    "labels", [Y.to(torch.int8), Y.to(torch.int32), F.one_hot(Y, 5), F.one_hot(Y, 5).double()]
)
def test_value_odd_labels_that_are_fine(model, labels):
    assert model(X, labels, 0.5).total.isfinite()


@pytest.mark.parametrize(
    "options", [{"size": [16, 16]}, {"size": torch.Size([16, 16])}, {"classes": np.int64(5)}]
)
def test_value_odd_arguments_that_are_fine(unchecked_shapes, options):
    assert wrap(**options)(X, Y, 0.5).total.isfinite()
