"""SAMix-P: a frozen Mixer as a policy, whatever the pictures' size, type and normalisation."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

import samix
from samix.core.pairing import Pairing
from samix.core.shapes import Stats
from samix.learned import Adjusting, FrozenMixer, MixerConfig, Painter
from samix.mixups import Hints
from samix.nn import build_encoder

STATS = Stats((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
INDEX = torch.tensor([1, 2, 3, 0])


def build(size: int = 32, **changes) -> FrozenMixer:
    torch.manual_seed(3)
    encoder = build_encoder("small-resnet", width=8)
    mixer = MixerConfig(init_std=0.7).build(encoder.probe(32)[0])
    return FrozenMixer(painter=Painter(encoder, mixer, STATS, size), **changes)


def pixels(height: int = 32, width: int = 32) -> Tensor:
    return torch.rand(4, 3, height, width, generator=torch.Generator().manual_seed(1))


def mask_of(policy: FrozenMixer, x: Tensor, lam: list[float]) -> Tensor:
    return policy(x, Pairing(torch.tensor(lam), INDEX), Hints(pixels=x)).mask


@pytest.mark.parametrize("lam", [[0.5], [0.2, 0.4, 0.6, 0.8]])
@pytest.mark.parametrize("rule", ["scale", "shift"])
def test_value_masks_have_the_mean_lam_and_are_not_constant(rule, lam):
    mask = mask_of(build(adjusting=Adjusting(rule=rule)), pixels(), lam)
    torch.testing.assert_close(mask.mean(dim=(1, 2, 3)), torch.tensor(lam).expand(4), atol=1e-3, rtol=0)
    assert float(mask.std(dim=(1, 2, 3)).min()) > 0.002


@pytest.mark.parametrize("lam", [0.0, 0.05, 0.95, 1.0])
def test_value_extreme_lam_is_plain_mixup(lam):
    assert torch.equal(mask_of(build(), pixels(), [lam]), torch.full((4, 1, 32, 32), lam))


@pytest.mark.parametrize(("height", "width"), [(32, 32), (24, 24), (64, 64), (40, 72), (17, 9)])
def test_shape_any_picture(height, width):
    mask = mask_of(build(), pixels(height, width), [0.3])
    assert mask.shape == (4, 1, height, width) and mask.dtype == torch.float32


def test_value_the_encoder_sees_pixels_in_its_own_normalisation_and_size():
    policy, seen, x = build(size=16), [], pixels(48, 32)
    policy.painter.encoder.network.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    mask_of(policy, x, [0.5])
    assert seen[0].shape == (4, 3, 24, 16)
    whole, same = build(size=32), []
    whole.painter.encoder.network.register_forward_pre_hook(lambda module, inputs: same.append(inputs[0]))
    mask_of(whole, x, [0.5])
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in STATS)
    torch.testing.assert_close(same[0], (x - mean) / std)


def test_invariant_nothing_of_it_learns_or_changes():
    policy, x = build(), pixels().requires_grad_()
    before = {name: value.clone() for name, value in policy.painter.state_dict().items()}
    policy.painter.train()
    mask = mask_of(policy, x, [0.4])
    assert not mask.requires_grad and not any(p.requires_grad for p in policy.painter.parameters())
    assert not any(module.training for module in policy.painter.modules())
    for name, value in policy.painter.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_value_in_the_drop_in_it_is_a_policy_like_any_other():
    x, y = pixels(), torch.tensor([0, 1, 2, 3])
    mean, std = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.6, 0.7])
    normalised = (x - mean.view(1, 3, 1, 1)) / std.view(1, 3, 1, 1)
    mix = samix.Mix(build(), classes=4, mode="elem", mean=mean.tolist(), std=std.tolist())
    torch.manual_seed(0)
    mixed = mix.mixed(normalised, y)
    expected = build().mask(x, mixed.pairing, Hints(pixels=x), None)
    torch.testing.assert_close(mixed.mask, expected, atol=2e-3, rtol=0)
    assert mix.rows(mixed, y).sum(dim=1).tolist() == pytest.approx([1.0] * 4)
    several = samix.Mix(["cutmix", replace(build(), alpha=1.0)], classes=4)
    assert several(x, y)[0].shape == x.shape
    with pytest.raises(ValueError, match="'samix-p' is a trained Mixer: .*load_mixer"):
        samix.Mix("samix-p", classes=4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_shape_images_keep_their_type(dtype):
    x = pixels().to(dtype)
    mixed = build()(x, Pairing(torch.tensor([0.5]), INDEX), Hints(pixels=x))
    assert mixed.x.dtype == dtype and mixed.mask.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_value_half_precision_pictures_are_seen_in_float32(dtype):
    """Only the pictures and the finished mask are rounded (by 2^-9 at most, in bfloat16)."""
    x, pairing = pixels().to(dtype), Pairing(torch.tensor([0.3, 0.4, 0.5, 0.6]), INDEX)
    half = build()(x, pairing, Hints(pixels=x)).mask
    expected = build()(x.float(), pairing, Hints(pixels=x.float())).mask
    torch.testing.assert_close(half.float(), expected, atol=2**-9 + 1e-6, rtol=0)


def test_value_grey_pictures_are_seen_as_grey_colours():
    grey = pixels()[:, :1]
    assert torch.equal(mask_of(build(), grey, [0.4]), mask_of(build(), grey.expand(-1, 3, -1, -1), [0.4]))


def test_error_a_mixer_does_not_look_at_four_channels():
    with pytest.raises(ValueError, match="pictures with 1 or 3 channels; got 4"):
        mask_of(build(), torch.rand(4, 4, 32, 32), [0.4])
