"""However a loop packs its batches, they come back packed so, and with the types that they had."""

from collections import OrderedDict, UserDict, namedtuple

import pytest
import torch
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from torchvision.transforms import v2

from samix import MIXUPS, Mix
from samix.mixups.latent import LatentMixup

CLASSES = 6
BLIND = [
    name
    for name, kind in MIXUPS.items()
    if not kind().needs and not issubclass(kind, LatentMixup) and name not in ("transmix", "tlalign")
]
Pair = namedtuple("Pair", "images labels weight")


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(5)), torch.arange(6)


def seeded(policy: str = "mixup", **options) -> Mix:
    return Mix(policy, CLASSES, generator=torch.Generator().manual_seed(1), **options)


PACKED = {
    "list": lambda x, y: [x, y],
    "tuple": lambda x, y: (x, y),
    "longer list": lambda x, y: [x, y, "name"],
    "named tuple": lambda x, y: Pair(x, y, 3),
    "dict": lambda x, y: {"image": x, "label": y, "id": [1, 2]},
    "hugging face": lambda x, y: UserDict({"pixel_values": x, "labels": y}),
    "keras": lambda x, y: OrderedDict(images=x, labels=y),
}


@pytest.mark.parametrize("kind", PACKED)
def test_value_a_packed_batch_is_mixed_and_packed_again(kind):
    x, y = batch()
    images, rows = seeded()(x, y)
    given = PACKED[kind](x, y)
    packed = seeded()(given)
    assert type(packed) is type(given) and len(packed) == len(given)
    values = list(packed.values()) if hasattr(packed, "values") else list(packed)
    assert torch.equal(values[0], images) and torch.equal(values[1], rows)
    assert values[2:] == list(given.values() if hasattr(given, "values") else given)[2:]


def test_value_the_given_dictionary_stays_as_it_was():
    x, y = batch()
    given = {"x": x, "y": y}
    seeded()(given)
    assert given["x"] is x and given["y"] is y


def test_value_keys_are_named_and_several_labels_are_several_heads():
    x, y = batch()
    mix = Mix("mixup", {"digit": 6, "angle": None}, keys=("scan", "digit", "angle"))
    mixed = mix({"scan": x, "digit": y, "angle": y / 6, "image": "kept"})
    assert mixed["digit"].shape == (6, 6) and mixed["angle"].shape == (6,) and mixed["image"] == "kept"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scan": 0, "label": 1}, r"not clear from the keys scan, label: name them, Mix\(\.\.\., keys="),
        ({"image": 0, "images": 0, "label": 1}, "not clear from the keys image, images, label"),
        ([0], r"call mix\(x, y\), mix\(\[x, y\]\)"),
        ("words", r"call mix\(x, y\).*got str alone"),
    ],
)
def test_error_what_cannot_be_unpacked(given, message):
    with pytest.raises(ValueError, match=message):
        seeded()(given)


def test_error_a_named_key_that_is_missing():
    x, y = batch()
    with pytest.raises(ValueError, match="the batch has no 'label': its keys are image, target"):
        seeded(keys=("image", "label"))({"image": x, "target": y})


@pytest.mark.parametrize(
    "extra",
    [
        tv_tensors.Mask(torch.zeros(6, 16, 16)),
        tv_tensors.BoundingBoxes(torch.zeros(6, 4), format="XYXY", canvas_size=(16, 16)),
    ],
    ids=["mask", "boxes"],
)
def test_error_what_would_no_longer_fit_the_images(extra):
    x, y = batch()
    for given in ([x, y, extra], {"image": x, "label": y, "extra": extra}):
        with pytest.raises(ValueError, match=rf"holds {type(extra).__name__} as well.*mixed\.dense"):
            seeded()(given)


@pytest.mark.parametrize("name", BLIND)
def test_invariant_images_of_torchvision_keep_their_type(name):
    x, y = batch()
    mixed = seeded(name)(tv_tensors.Image(x), y)[0]
    assert type(mixed) is tv_tensors.Image
    assert torch.equal(mixed.as_subclass(torch.Tensor), seeded(name)(x, y)[0])
    assert type(seeded(name)(x, y)[0]) is torch.Tensor


def test_invariant_video_of_torchvision_keeps_its_type():
    clips = tv_tensors.Video(torch.rand(6, 4, 3, 16, 16))
    mixed = seeded("cutmix")(clips, torch.arange(6))[0]
    assert type(mixed) is tv_tensors.Video and mixed.shape == clips.shape


@pytest.mark.parametrize("packed", [False, True], ids=["x, y", "[x, y]"])
@pytest.mark.parametrize(
    "around",
    [
        lambda mix: v2.Compose([v2.RandomHorizontalFlip(p=0), mix]),
        lambda mix: v2.RandomChoice([mix, mix]),
        lambda mix: v2.RandomApply([mix], p=1.0),
        lambda mix: v2.RandomOrder([mix]),
    ],
    ids=["Compose", "RandomChoice", "RandomApply", "RandomOrder"],
)
def test_value_inside_torchvisions_containers(around, packed):
    x, y = batch()
    transform = around(seeded())
    images, rows = transform([x, y]) if packed else transform(x, y)
    expected = seeded()(x, y)
    assert torch.equal(images, expected[0]) and torch.equal(rows, expected[1])
    assert "Mix(MixUp(), classes=6)" in repr(transform)


@pytest.mark.parametrize("kind", ["tuple", "dict"])
def test_value_as_collate_function(kind):
    x, y = batch()
    samples = [
        (image, int(label)) if kind == "tuple" else {"image": image, "label": int(label)}
        for image, label in zip(x, y, strict=True)
    ]
    (found,) = DataLoader(samples, batch_size=6, collate_fn=seeded().collate)
    images, rows = (found["image"], found["label"]) if kind == "dict" else found
    expected = seeded()(x, y)
    assert torch.equal(images, expected[0]) and torch.equal(rows, expected[1])
