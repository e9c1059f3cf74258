"""What users of torchvision, timm, kornia, Keras and OpenMixup rely on, in samix's own words."""

import pytest
import torch
from PIL import Image
from torch.autograd import gradcheck
from torchvision.transforms import v2

from samix import CutMix, Mix, MixUp
from samix.core.pairing import Pairing
from samix.mixups.cutmix import box_around

PAIRED = ["mixup", "cutmix", "fmix", "gridmix", "smoothmix", "resizemix", "mixup+cutmix"]


def halves(count: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures that are one number each, of classes that are told by it."""
    y = torch.arange(count)
    return y.float().view(-1, 1, 1, 1).expand(-1, 3, 12, 20) + 1, y


# ------------------------------------------------------------ torchvision


@pytest.mark.parametrize("lam", [0.05, 0.3, 0.5, 0.81])
def test_value_the_papers_box_is_torchvisions(lam):
    theirs = v2.CutMix(alpha=1.0, num_classes=2)
    theirs._dist = type(
        "Drawn", (), {"sample": lambda self, shape: torch.tensor([lam], dtype=torch.float64)}
    )()
    x = torch.zeros(2, 3, 33, 20)
    for seed in range(20):
        torch.manual_seed(seed)
        left, top, right, bottom = theirs.make_params([x])["box"]
        torch.manual_seed(seed)
        column, row = torch.randint(20, (1,)), torch.randint(33, (1,))
        ours = box_around((33, 20), row, column, torch.tensor([lam], dtype=torch.float64), "paper")
        assert [max(int(ours.top), 0), min(int(ours.bottom), 33)] == [top, bottom]
        assert [max(int(ours.left), 0), min(int(ours.right), 20)] == [left, right]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.rand(4, 3, 8, 8), "labels", "labels must be tensors; got str"),
        (
            torch.rand(4, 3, 8, 8),
            torch.zeros(4, 2, 2).long(),
            r"labels must have shape \[B\].*got \[4, 2, 2\]",
        ),
        (torch.rand(4, 3, 8, 8), torch.zeros(4, 3), r"or \[B, 10\] \(soft labels\); got \[4, 3\]"),
        (torch.rand(3, 8, 8), torch.zeros(3).long(), r"\[B, C, H, W\]; got \[3, 8, 8\]"),
        (Image.new("RGB", (8, 8)), torch.zeros(1).long(), "float tensor .*; got Image"),
    ],
)
def test_error_what_torchvision_refuses(unchecked_shapes, x, y, message):
    with pytest.raises(ValueError, match=message):
        Mix("cutmix", 10)([x, y])


# ------------------------------------------------------------ timm


@pytest.mark.parametrize("mode", ["batch", "pair", "elem", "half"])
@pytest.mark.parametrize("policy", [{"mixup_alpha": 0.8}, {"mixup_alpha": 0.0, "cutmix_alpha": 1.0}])
def test_value_rows_are_smoothed_and_sum_to_one_in_every_mode_of_timm(policy, mode):
    x, y = halves()
    images, rows = Mix.timm(**policy, mode=mode, num_classes=10)(x, y)
    assert len(images) == len(rows) == (4 if mode == "half" else 8)
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(len(rows)))
    assert float(rows.min()) == pytest.approx(0.01)


# ------------------------------------------------------------ Keras, OpenMixup


@pytest.mark.parametrize("mode", ["batch", "elem", "pair"])
@pytest.mark.parametrize("policy", PAIRED)
def test_invariant_labels_weigh_what_the_pictures_show(policy, mode):
    """A picture of one number shows the mean of its parents' numbers, and so does its label."""
    x, y = halves()
    images, rows = Mix(policy, 8, mode=mode)(x, y)
    shown = images.mean(dim=(1, 2, 3))
    torch.testing.assert_close(shown, rows @ (torch.arange(8.0) + 1), atol=1e-4, rtol=0)
    assert ((rows > 0).sum(dim=1) <= 2).all() and (rows.argmax(dim=1) >= 0).all()


def test_value_cutmix_shows_pixels_of_both_and_no_others():
    x, y = halves(2)
    images = Mix("cutmix", 2, alpha=50.0)(x, y)[0]
    for image in images:
        assert set(image.unique().tolist()) == {1.0, 2.0}


def test_error_dictionaries_without_labels():
    with pytest.raises(ValueError, match="images and labels are not clear from the keys images"):
        Mix("mixup", 2)({"images": halves()[0]})


# ------------------------------------------------------------ kornia


@pytest.mark.parametrize("policy", PAIRED)
def test_value_with_probability_zero_nothing_changes_and_lam_is_one(policy):
    x, y = halves()
    images, y_a, _, lam = Mix(policy, prob=0.0).pairs(x, y)
    assert torch.equal(images, x) and torch.equal(y_a, y) and (lam == 1).all()


def test_value_one_lam_for_the_batch_or_one_for_each():
    x, y = halves()
    assert Mix("mixup", mode="batch").pairs(x, y)[3].shape == (1,)
    assert len(Mix("mixup", mode="elem").pairs(x, y)[3].unique()) == 8


@pytest.mark.parametrize("policy", [MixUp(), CutMix()])
def test_gradient_equals_differences(policy):
    x = torch.rand(3, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    pairing = Pairing(torch.tensor([0.3, 0.6, 0.8]), torch.tensor([1, 2, 0]))

    def mixed(images: torch.Tensor) -> torch.Tensor:
        return policy(images, pairing, generator=torch.Generator().manual_seed(1)).x

    assert gradcheck(mixed, x)
