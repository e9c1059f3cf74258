"""Views against slow loops, and normalisation there and back."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from samix.data import views
from samix.data.datasets import CIFAR_STATS, Data
from samix.data.views import crop_flip, denormalize, normalize, reflect, train_view


def crops(picture: Tensor, padding: int) -> list[Tensor]:
    """Every crop of a reflect-padded picture, as it is and flipped, one after the other."""
    height, width = picture.shape[-2:]
    padded = F.pad(picture[None].float(), (padding,) * 4, mode="reflect")[0].to(torch.uint8)
    found = []
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            crop = padded[:, top : top + height, left : left + width]
            found += [crop, crop.flip(2)]
    return found


@given(
    height=st.integers(8, 13), width=st.integers(8, 13), padding=st.integers(0, 4), seed=st.integers(0, 1000)
)
def test_value_crop_flip_gives_windows_of_the_padded_picture(random_pictures, height, width, padding, seed):
    torch.manual_seed(seed)
    pictures = random_pictures(3, height, width)
    for picture, seen in zip(pictures, crop_flip(pictures, padding), strict=True):
        assert any(torch.equal(seen, crop) for crop in crops(picture, padding))


def test_value_crop_flip_reaches_every_window_and_flips_half(random_pictures):
    picture = random_pictures(1, 8, 8)
    seen = crop_flip(picture.expand(2000, -1, -1, -1), padding=2)
    which = [next(i for i, w in enumerate(crops(picture[0], 2)) if torch.equal(w, s)) for s in seen]
    assert set(which) == set(range(50))
    flipped = sum(i % 2 for i in which) / len(which)
    assert 0.45 < flipped < 0.55


def test_value_crop_flip_keeps_its_input(random_pictures):
    pictures = random_pictures(4, 8, 8)
    before = pictures.clone()
    seen = crop_flip(pictures)
    assert torch.equal(pictures, before)
    assert seen.dtype == torch.uint8 and seen.shape == pictures.shape


def test_value_reflect():
    positions = torch.tensor([-3, -1, 0, 4, 5, 7])
    assert reflect(positions, 5).tolist() == [3, 1, 0, 4, 3, 1]


@pytest.mark.parametrize("view", ["crop-flip", "resized-crop", "none"])
def test_shape_any_view_of_pictures_of_any_size(view, random_pictures):
    see = train_view(Data(size=16, view=view))
    for pictures in (random_pictures(3, 16, 16), random_pictures(3, 20, 24)):
        assert see(pictures).shape == (3, 3, 16, 16)
    several = [random_pictures(1, 20, 24)[0], random_pictures(1, 9, 40)[0]]
    assert see(several).shape == (2, 3, 16, 16)
    assert see(several).dtype == torch.uint8


def test_value_view_none_leaves_pictures_as_they_are(random_pictures):
    pictures = random_pictures(3, 16, 16)
    assert torch.equal(train_view(Data(size=16, view="none"))(pictures), pictures)
    assert torch.equal(views.test_view(Data(size=16))(pictures), pictures)


def test_value_resized_crop_looks_at_each_picture_on_its_own(random_pictures):
    picture = random_pictures(1, 32, 32)
    seen = train_view(Data(size=16, view="resized-crop"))(picture.expand(8, -1, -1, -1))
    assert len({tuple(s.flatten().tolist()) for s in seen}) == 8


def test_value_test_view_takes_the_centre():
    picture = torch.zeros(3, 40, 60, dtype=torch.uint8)
    picture[:, 12:28, 22:38] = 200  # what remains of the middle when the short side stays 40
    seen = views.test_view(Data(size=16, test_resize=40))([picture])
    assert torch.equal(seen, torch.full_like(seen, 200))


def test_error_unknown_view(unchecked_shapes):
    with pytest.raises(ValueError, match=r"unknown data\.view 'crop_flip'. Did you mean 'crop-flip'\?"):
        train_view(Data(view="crop_flip"))


@given(st.integers(0, 1000))
def test_invariant_denormalize_undoes_normalize(seed):
    pictures = torch.randint(
        0, 256, (2, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed)
    )
    assert torch.equal(denormalize(normalize(pictures, *CIFAR_STATS), *CIFAR_STATS), pictures)


def test_value_normalize():
    pictures = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    seen = normalize(pictures, (0.5, 0.2, 0.5), (0.25, 0.2, 0.5))
    torch.testing.assert_close(seen.flatten(), torch.tensor([-2.0, 0.0, 1.0]))


def test_value_denormalize_clips():
    images = torch.tensor([-9.0, 0.0, 9.0]).view(1, 3, 1, 1)
    assert denormalize(images, (0.5,) * 3, (0.25,) * 3).flatten().tolist() == [0, 128, 255]


def test_value_pictures_are_tested_at_a_size_of_their_own(random_pictures):
    pictures = random_pictures(2, 60, 80)
    data = Data(size=16, test_size=32, test_resize=40, view="resized-crop")
    assert train_view(data)(pictures).shape[-1] == 16
    seen = views.test_view(data)(pictures)
    assert torch.equal(seen, views.test_view(Data(size=32, test_resize=40))(pictures))
    assert views.test_view(Data(size=16, test_size=32))(pictures).shape == (2, 3, 32, 32)
    assert Data(size=16, test_size=32, test_zoom=1.25).test_short == 40
