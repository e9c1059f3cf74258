"""Video and volumes: one mask for all frames, or one for each."""

import pytest
import torch
from torchvision import tv_tensors

from samix import Mix
from samix.core.pairing import Pairing
from samix.mix.clips import pair_frames

ONE_MASK = ["mixup", "cutmix", "fmix", "gridmix", "smoothmix", "mixup+cutmix"]


def clips() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(4, 2, 5, 8, 10, generator=torch.Generator().manual_seed(1)), torch.arange(4)


@pytest.mark.parametrize("mode", ["batch", "elem", "pair"])
@pytest.mark.parametrize("per_frame", [False, True])
@pytest.mark.parametrize("name", ONE_MASK)
def test_value_clips_are_blended_by_their_masks(name, per_frame, mode):
    x, y = clips()
    mixed = Mix(name, 4, per_frame=per_frame, mode=mode).mixed(x, y)
    assert mixed.x.shape == x.shape and mixed.mask.shape[2] == (5 if per_frame else 1)
    mask, lam = mixed.mask.expand(4, 1, 5, 8, 10), mixed.pairing.lam.expand(4)
    for i in range(4):
        expected = mask[i] * x[i] + (1 - mask[i]) * x[mixed.pairing.index[i]]
        torch.testing.assert_close(mixed.x[i], expected)
        assert float(lam[i]) == pytest.approx(float(mask[i].mean()), abs=1e-5)


def test_value_frames_have_boxes_of_their_own():
    x, y = clips()
    masks = Mix("cutmix", 4, per_frame=True, alpha=100.0).mixed(x, y).mask
    assert len({tuple(frame.flatten().tolist()) for frame in masks[0, 0]}) > 1


def test_value_torchvisions_video_has_frames_before_channels():
    x, y = clips()
    video = tv_tensors.Video(x.movedim(2, 1))
    mix = [Mix("fmix", 4, per_frame=True, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(mix[0](video, y)[0].movedim(1, 2), mix[1](x, y)[0])


def test_value_a_map_of_every_frame_is_mixed_along():
    x, y = clips()
    for name in ("cutmix", "resizemix"):
        mixed = Mix(name, 4).mixed(x, y)
        torch.testing.assert_close(mixed.dense(x), mixed.x)
        assert torch.equal(mixed.dense(x[:, 0]), mixed.x[:, 0])


def test_value_a_frame_is_paired_with_the_same_frame():
    frames = pair_frames(Pairing(torch.tensor([0.2, 0.7]), torch.tensor([1, 0])), 2, 3)
    assert frames.index.tolist() == [3, 4, 5, 0, 1, 2]
    torch.testing.assert_close(frames.lam, torch.tensor([0.2, 0.2, 0.2, 0.7, 0.7, 0.7]))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("saliencymix", {}, r"SaliencyMix looks at pixels of images \[B, C, H, W\]; got \[4, 2, 5, 8, 10\]"),
        ("resizemix", {"per_frame": True}, "ResizeMix mixes clips as a whole only"),
    ],
)
def test_error_policies_that_clips_have_not(name, options, message):
    with pytest.raises(ValueError, match=message):
        Mix(name, 4, **options)(*clips())


def test_error_forward_runs_on_images():
    with pytest.raises(ValueError, match=r"forward runs the model.*got \[4, 2, 5, 8, 10\]"):
        Mix("mixup", 4).forward(torch.nn.Flatten(), *clips())
