"""What torchvision's own tests ask of `v2.CutMix` and `v2.MixUp`, asked of `Mix` in samix's words.

Differs: a batch may be mixed twice, because soft rows are labels too (torchvision refuses them).
"""

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, default_collate
from torchvision import tv_tensors
from torchvision.transforms import v2

from samix import Mix
from samix.mixups.cutmix import box_around

COUNT, CLASSES = 32, 100
SAMPLES = [(torch.rand(3, 20, 20), label) for label in range(COUNT)]
POLICIES = ["cutmix", "mixup"]


def assert_mixed(images: torch.Tensor, rows: torch.Tensor) -> None:
    """Every picture has two classes, whose weights sum to 1."""
    assert images.shape == (COUNT, 3, 20, 20) and rows.shape == (COUNT, CLASSES)
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(COUNT))
    assert ((rows != 0).sum(dim=1) == 2).all()


def mixing(policy: str) -> Mix:
    """A lam that leaves something of both pictures."""
    return Mix(policy, CLASSES, alpha=50.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_value_batches_of_a_loader_unpacked_and_packed(policy):
    mix, loader = mixing(policy), DataLoader(SAMPLES, batch_size=COUNT)
    images, labels = next(iter(loader))
    assert_mixed(*mix(images, labels))
    packed = next(iter(loader))
    assert isinstance(packed, list) and isinstance(mix(packed), list)
    assert_mixed(*mix(packed))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("unpacked", [False, True])
def test_value_as_a_collating_function(policy, unpacked):
    mix = mixing(policy)

    def collate(samples):
        batch = default_collate(samples)
        return mix(*batch) if unpacked else mix(batch)

    (batch,) = DataLoader(SAMPLES, batch_size=COUNT, collate_fn=collate)
    assert_mixed(*batch)


@pytest.mark.parametrize("policy", POLICIES)
def test_value_twice_in_a_row_mixes_up_to_four_classes(policy):
    images, labels = default_collate(SAMPLES)
    mix = mixing(policy)
    images, rows = v2.Compose([mix, mix])(images, labels)
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(COUNT))
    assert 2 < (rows != 0).sum(dim=1).float().mean() <= 4


@pytest.mark.parametrize("key", ["labels", "LABELS", "LaBeL"])
def test_value_labels_are_found_in_capitals_too(key):
    images, labels = default_collate(SAMPLES)
    assert_mixed(*(mixing("mixup")({"img": images, key: labels})[name] for name in ("img", key)))


@pytest.mark.parametrize("lam", [0.05, 0.3, 0.5, 0.81])
def test_value_the_papers_box_is_torchvisions(lam):
    theirs = v2.CutMix(alpha=1.0, num_classes=2)
    theirs._dist = type(
        "Drawn", (), {"sample": lambda self, shape: torch.tensor([lam], dtype=torch.float64)}
    )()
    x = torch.zeros(2, 3, 33, 20)
    for seed in range(20):
        torch.manual_seed(seed)
        draw = getattr(theirs, "make_params", None) or theirs._get_params  # before torchvision 0.21
        left, top, right, bottom = draw([x])["box"]
        torch.manual_seed(seed)
        column, row = torch.randint(20, (1,)), torch.randint(33, (1,))
        ours = box_around((33, 20), row, column, torch.tensor([lam], dtype=torch.float64), "paper")
        assert [max(int(ours.top), 0), min(int(ours.bottom), 33)] == [top, bottom]
        assert [max(int(ours.left), 0), min(int(ours.right), 20)] == [left, right]


X, Y = torch.rand(9, 3, 12, 12), torch.arange(9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Image.new("RGB", (12, 12)),), "got Image alone"),
        ((tv_tensors.Mask(torch.rand(12, 12)),), "got Mask alone"),
        (
            (tv_tensors.BoundingBoxes(torch.rand(2, 4), format="XYXY", canvas_size=(12, 12)),),
            "got BoundingBoxes alone",
        ),
        (({"img": X, "nothing_else": 3},), "not clear from the keys img, nothing_else: name them"),
        ((X,), "got Tensor alone"),
        ((X, "no tensor"), "labels must be tensors; got str"),
        ((X, torch.zeros(9, 3).long()), r"or \[B, 10\] \(soft labels\); got \[9, 3\]"),
        ((X[None, None], Y), r"\[B, C, H, W\]; got \[1, 1, 9, 3, 12, 12\]"),
        ((X, torch.arange(10)), "9 images but 10 labels"),
    ],
)
def test_error_what_torchvision_refuses(unchecked_shapes, policy, given, message):
    with pytest.raises(ValueError, match=message):
        Mix(policy, 10)(*given)
