"""Settings are checked when a Mix is made and when they are set; other libraries' names are answered."""

import math

import pytest
import torch

from samix import CutMix, Mix, MixUp
from samix.mix.settings import ARGUMENTS, THEIR_NAMES


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(6, 3, 16, 16), torch.arange(6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "10"}, "classes must be a whole number of at least 1, got '10'"),
        ({"classes": 2.5}, "classes must be a whole number"),
        ({"classes": (3, 0)}, "classes must be a whole number"),
        ({"mode": None}, "unknown mode 'None'. Available: batch, pair, elem, half"),
        ({"prob": math.nan}, r"prob must lie in \[0, 1\], got nan"),
        ({"prob": None}, r"prob must lie in \[0, 1\], got None"),
        ({"smoothing": "x"}, r"smoothing must lie in \[0, 1\), got 'x'"),
        ({"off_epoch": math.nan}, "off_epoch must be a whole number from 0 on, got nan"),
        ({"mean": (0.5,), "std": (0.0,)}, r"std positive; got \[0.5\] and \[0.0\]"),
        ({"mean": (math.nan,), "std": (1.0,)}, "mean must be finite"),
        ({"mean": (0.5,), "std": (math.nan,)}, "std positive"),
        ({"mean": (), "std": ()}, "one value per channel"),
        ({"model": "resnet18"}, "model must be a network, an nn.Module; got str"),
        ({"teacher": print}, "teacher must be a network"),
        ({"keys": "image"}, r"keys must name images and labels, such as \('image', 'label'\)"),
        ({"generator": 3}, "generator must be a torch.Generator on the CPU, got 3"),
        ({"correct_lam": "no"}, "correct_lam must be True or False"),
        ({"policy": 3}, "a policy is a name or a samix.Policy; got 3"),
        ({"policy": "smoothmix", "correct_lam": False}, "lam of .*SmoothMix.* is no label weight"),
    ],
)
def test_error_bad_settings_are_named(unchecked_shapes, options, message):
    with pytest.raises(ValueError, match=message):
        Mix(**options)


@pytest.mark.parametrize("name", THEIR_NAMES)
def test_error_other_libraries_names_are_answered(name):
    with pytest.raises(TypeError, match=rf"Mix has no argument '{name}': write (\w+)="):
        Mix("mixup", **{name: 1})


def test_invariant_answers_name_arguments_that_exist():
    assert {answer.partition("=")[0] for answer in THEIR_NAMES.values()} <= set(ARGUMENTS)
    assert set(ARGUMENTS) - {"epoch", "mixup_enabled"} <= set(Mix.__init__.__annotations__)


def test_error_unknown_arguments_get_a_suggestion():
    with pytest.raises(TypeError, match="Mix has no argument 'smothing'. Did you mean 'smoothing'"):
        Mix("mixup", smothing=0.1)


@pytest.mark.parametrize("name", ["mixup_enable", "num_classes", "model", "alpha"])
def test_error_attributes_that_do_not_exist(name):
    with pytest.raises(AttributeError, match=f"Mix has no attribute '{name}'"):
        setattr(Mix("mixup", 6), name, 1)


@pytest.mark.parametrize(("name", "value"), [("mode", "elem"), ("policy", MixUp())])
def test_error_attributes_that_are_fixed(name, value):
    with pytest.raises(AttributeError, match=f"{name} is fixed when a Mix is made"):
        setattr(Mix("mixup", 6), name, value)


def test_error_attributes_are_checked_when_set():
    with pytest.raises(ValueError, match=r"prob must lie in \[0, 1\], got 2"):
        Mix("mixup", 6).prob = 2


def test_value_settings_may_change_later():
    mix, (x, y) = Mix("mixup", 6), batch()
    mix.prob = 0.0
    assert torch.equal(mix(x, y)[0], x)
    mix.prob, mix.classes = 1.0, 8
    assert mix(x, y)[1].shape == (6, 8)


def test_value_timms_switch_turns_mixing_off_and_on():
    mix, (x, y) = Mix("cutmix", 6, alpha=50.0), batch()
    mix.mixup_enabled = False
    assert torch.equal(mix(x, y)[0], x)
    mix.mixup_enabled = True
    assert not torch.equal(mix(x, y)[0], x)


def test_value_timms_arguments_and_defaults():
    default = Mix.timm()
    assert default.policy == MixUp() and default.classes == 1000 and default.smoothing == 0.1
    both = Mix.timm(0.8, 1.0, None, 0.9, 0.3, "elem", False, 0.0, 10)
    assert both.policy.members == (MixUp(alpha=0.8), CutMix())
    assert both.policy.odds == pytest.approx((0.7, 0.3)) and (both.mode, both.correct_lam) == ("elem", False)
    assert Mix.timm(mixup_alpha=0.0, cutmix_alpha=0.5).policy == CutMix(alpha=0.5)
    minmax = Mix.timm(mixup_alpha=0.0, cutmix_minmax=[0.2, 0.8], correct_lam=False)
    assert minmax.policy == CutMix(minmax=(0.2, 0.8)) and minmax.correct_lam


def test_error_timm_needs_something_to_mix_by():
    with pytest.raises(ValueError, match="timm mixes by mixup_alpha > 0"):
        Mix.timm(mixup_alpha=0.0)


@pytest.mark.parametrize("policy", ["mixup", "cutmix", "resizemix", "mixup+cutmix"])
def test_value_half_mode_gives_the_first_half_mixed_with_the_second(policy):
    x, y = batch()
    mixed = Mix(policy, 6, mode="half", generator=torch.Generator().manual_seed(4)).mixed(x, y)
    assert mixed.x.shape[0] == 3 and mixed.pairing.index.tolist() == [5, 4, 3]
    first, second = (x[:3], x[[5, 4, 3]]) if mixed.sources is None else mixed.sources(x)
    for i in range(3):
        expected = mixed.mask[i] * first[i] + (1 - mixed.mask[i]) * second[i]
        torch.testing.assert_close(mixed.x[i], expected)
    rows = mixed.soft_labels(y, 6)
    for i in range(3):
        assert float(rows[i, i]) == pytest.approx(float(mixed.pairing.lam[i]))
        assert float(rows[i, 5 - i]) == pytest.approx(1 - float(mixed.pairing.lam[i]))
    torch.testing.assert_close(mixed.dense(x), mixed.x)


def test_value_half_mode_gives_half_the_pairs_too():
    x, y = batch()
    images, y_a, y_b, lam = Mix("mixup", mode="half").pairs(x, y)
    assert len(images) == len(lam) == 3 and y_a.tolist() == [0, 1, 2] and y_b.tolist() == [5, 4, 3]


def test_error_half_mode_has_no_forward():
    with pytest.raises(ValueError, match="in mode 'half'. Call mix"):
        Mix("mixup", 6, mode="half").forward(torch.nn.Flatten(), *batch())
