"""The drop-in over the whole table: the same call for every policy, whatever the labels and the batch."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import samix
from samix import Mix
from samix.mixups import MIXUPS, CutMix, MixUp
from samix.mixups.latent import LatentMixup
from samix.nn.zoo import build_encoder

CLASSES = 5
ATTENTIVE = {"smmix", "tokenmix", "transmix"}
INSIDE = {name for name, kind in MIXUPS.items() if issubclass(kind, LatentMixup)} | {"transmix"}
ON_IMAGES = [name for name in MIXUPS if name not in INSIDE]
MODES = ["batch", "pair", "elem"]


def network(name: str) -> nn.Module:
    """The smallest model that the policy works with."""
    torch.manual_seed(0)
    if name in ATTENTIVE:
        return nn.Sequential(build_encoder("small-vit", width=2, size=16), nn.Linear(12, CLASSES))
    if name == "supermix":
        return recogniser()
    return nn.Sequential(build_encoder("small-resnet", width=4), nn.Linear(32, CLASSES))


def recogniser() -> nn.Module:
    """A teacher that names another class for each of the first pictures, whatever weights a CPU draws."""
    pictures = F.adaptive_avg_pool2d(batch()[0], 4).flatten(1)
    linear = nn.Linear(pictures.shape[1], CLASSES)
    with torch.no_grad():
        linear.weight.copy_(pictures[:CLASSES] - pictures.mean(dim=0))
        linear.bias.copy_(-linear.weight @ pictures.mean(dim=0))
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), linear)


def build(name: str, **options) -> Mix:
    layer = "layer3" if name == "attentivemix" else None
    return Mix(name, CLASSES, **{"model": network(name), "layer": layer} | options)


def batch(count: int = 6, size: tuple[int, int] = (16, 16)) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(5)
    return torch.rand(count, 3, *size, generator=draw), torch.arange(count) % CLASSES


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ON_IMAGES)
def test_value_one_call_gives_images_and_rows(name, mode):
    x, y = batch()
    copy = x.clone()
    mixed, rows = build(name, mode=mode)(x, y)
    assert mixed.shape == x.shape and mixed.isfinite().all()
    assert torch.equal(x, copy) and x._version == 0
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(6))


@pytest.mark.parametrize("name", MIXUPS)
def test_value_forward_gives_outputs_and_rows(name):
    mix, (x, y) = build(name), batch()
    outputs, rows = mix.forward(mix.supplier.network, x, y)
    assert outputs.shape == (6, CLASSES) and outputs.requires_grad
    torch.testing.assert_close(rows.sum(dim=1), torch.ones(6))


@pytest.mark.parametrize("name", sorted(INSIDE))
def test_error_policies_inside_the_network_name_forward(name):
    with pytest.raises(ValueError, match=r"forward\(model, x, y\)"):
        build(name)(*batch())


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ON_IMAGES)
def test_shape_any_batch(name, count):
    x, y = batch(count)
    for mode in MODES:
        mixed, rows = build(name, mode=mode)(x, y)
        assert mixed.shape == x.shape and rows.shape == (count, CLASSES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", [n for n in ON_IMAGES if not MIXUPS[n].needs])
def test_shape_half_precision_stays_half(name, dtype):
    x, y = batch()
    assert Mix(name, CLASSES)(x.to(dtype), y)[0].dtype == dtype


@pytest.mark.parametrize("name", [n for n in ON_IMAGES if not MIXUPS[n].needs])
def test_shape_channels_last_stays(name):
    x, y = batch()
    mixed = Mix(name, CLASSES)(x.contiguous(memory_format=torch.channels_last), y)[0]
    assert mixed.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("name", ON_IMAGES)
def test_value_prob_zero_and_off_epoch_leave_the_batch_alone(name):
    x, y = batch()
    for mix in (build(name, prob=0.0), build(name, off_epoch=3)):
        mix.set_epoch(3)
        mixed, rows = mix(x, y)
        assert torch.equal(mixed, x)
        torch.testing.assert_close(rows, F.one_hot(y, CLASSES).float())


def test_value_before_the_off_epoch_batches_are_mixed():
    mix, (x, y) = Mix("mixup", CLASSES, off_epoch=3), batch()
    mix.set_epoch(2)
    assert not torch.equal(mix(x, y)[0], x)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ON_IMAGES)
def test_value_a_generator_fixes_the_result(name, mode):
    x, y = batch()

    def once(seed: int) -> torch.Tensor:
        return build(name, mode=mode, generator=torch.Generator().manual_seed(seed))(x, y)[0]

    assert torch.equal(once(1), once(1))
    assert any(not torch.equal(once(1), once(seed)) for seed in (2, 3, 4))


def test_value_indices_one_hot_and_soft_labels_agree():
    x, y = batch()
    rows = F.one_hot(y, CLASSES)
    by_index, by_row, by_float = (
        Mix("cutmix", CLASSES, generator=torch.Generator().manual_seed(1))(x, labels)[1]
        for labels in (y, rows.float(), rows.double())
    )
    assert torch.equal(by_index, by_row) and torch.equal(by_index, by_float)


def test_value_multi_hot_labels_are_mixed_like_any_row():
    x, _ = batch(2)
    y = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    mixed = Mix("mixup", generator=torch.Generator().manual_seed(1)).mixed(x, y)
    lam = float(mixed.pairing.lam)
    rows = Mix("mixup", generator=torch.Generator().manual_seed(1))(x, y)[1]
    torch.testing.assert_close(rows, torch.tensor([[lam, 1, 1 - lam], [1 - lam, 1, lam]]))


def test_value_pairs_recompute_the_images():
    x, y = batch()
    mixed, y_a, y_b, lam = Mix("mixup").pairs(x, y)
    partners = [int((y == label).nonzero()[0]) for label in y_b[1:5]]
    assert torch.equal(y_a, y)
    for i, j in enumerate(partners, start=1):
        candidates = [k for k in range(6) if y[k] == y_b[i]]
        errors = [(mixed[i] - (lam * x[i] + (1 - lam) * x[k])).abs().max() for k in candidates]
        assert min(errors) < 1e-5, j


def test_value_pair_mode_mixes_with_the_reverse_and_shares_lam():
    x, y = batch(7)
    mixed = Mix("mixup", CLASSES, mode="pair").mixed(x, y)
    assert torch.equal(mixed.pairing.index, torch.arange(7).flip(0))
    torch.testing.assert_close(mixed.pairing.lam, mixed.pairing.lam.flip(0))
    assert mixed.pairing.lam[3] == 1 and torch.equal(mixed.x[3], x[3])
    assert len(mixed.pairing.lam.unique()) == 4


def test_value_elem_mode_draws_lam_and_policy_per_image():
    x, y = batch(64)
    mixed = Mix(["mixup", "cutmix"], CLASSES, mode="elem").mixed(x, y)
    cut = torch.tensor([len(mask.unique()) > 1 or float(mask.min()) in (0.0, 1.0) for mask in mixed.mask])
    assert 8 < int(cut.sum()) < 56
    for i in range(64):
        expected = mixed.mask[i] * x[i] + (1 - mixed.mask[i]) * x[mixed.pairing.index[i]]
        torch.testing.assert_close(mixed.x[i], expected)
        assert float(mixed.pairing.lam[i]) == pytest.approx(float(mixed.mask[i].mean()), abs=1e-5)


def test_value_shares_decide_between_policies():
    x, y = batch()
    mix = Mix({"mixup": 0.2, "cutmix": 0.8}, CLASSES, generator=torch.Generator().manual_seed(0))
    cut = sum(int(mix.policy.choose(1, mix.generator)) for _ in range(500)) / 500
    assert 0.73 < cut < 0.87


def test_value_without_correction_labels_keep_the_drawn_lam():
    x, y = batch(2)

    def lam(correct: bool) -> float:
        mix = Mix(CutMix(), CLASSES, correct_lam=correct, generator=torch.Generator().manual_seed(3))
        return float(mix.mixed(x, y).pairing.lam)

    drawn = float(MixUp().draw(2, torch.Generator().manual_seed(3)).lam)
    assert lam(False) == pytest.approx(drawn) and lam(True) != pytest.approx(drawn)


def test_value_smoothing_equals_timms():
    x, y = batch(6)
    from timm.data import Mixup  # behind samix, which lets torchvision import beside a CPU torch

    theirs = Mixup(mixup_alpha=1.0, label_smoothing=0.1, num_classes=CLASSES)
    _, expected = theirs(x.clone(), y)
    values = expected.unique()
    ours = Mix("mixup", CLASSES, smoothing=0.1)(x, y)[1]
    assert float(ours.min()) == pytest.approx(float(values.min()), abs=1e-6)
    torch.testing.assert_close(ours.sum(dim=1), expected.sum(dim=1))


@pytest.mark.parametrize("name", [n for n in ON_IMAGES if n not in ("comixup", "augmix")])
def test_value_a_class_map_is_mixed_with_the_images(name):
    x, y = batch()
    maps = (x[:, 0] > 0.5).long()
    mixed = build(name).mixed(x, y)
    dense = mixed.dense(maps)
    assert dense.shape == maps.shape and dense.dtype == maps.dtype
    float_dense = mixed.dense(x)
    torch.testing.assert_close(float_dense, mixed.x)


def test_value_alpha_reaches_every_policy():
    assert [policy.alpha for policy in Mix(["mixup", "cutmix"], alpha=0.3).policy.members] == [0.3, 0.3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "cutmx"}, "unknown mixup 'cutmx'.*cutmix"),
        (
            {"policy": "tiny"},
            r"unknown mixup 'tiny'.* A trained Mixer: Mix\(samix.load_mixer",
        ),
        ({"mode": "image"}, "unknown mode 'image'"),
        ({"prob": 1.5}, r"prob must lie in \[0, 1\], got 1.5"),
        ({"smoothing": 1.0}, r"smoothing must lie in \[0, 1\), got 1.0"),
        ({"alpha": 0.0}, "mixup.alpha must be positive, got 0.0"),
        ({"policy": "samix"}, r"'samix' learns its masks .* samix.SAMix.wrap\(.*samix.LearnedMixup"),
        ({"policy": "adautomix"}, r"'adautomix' learns its masks .* samix.AdAutoMixed"),
        ({"classes": 0}, "classes must be a whole number of at least 1, got 0"),
        ({"policy": {"mixup": -1.0}}, "probabilities must be 0 or more"),
        ({"policy": []}, "at least one policy"),
        ({"mean": (0.5, 0.5, 0.5)}, "mean and std belong together"),
        ({"mean": (0.5,), "std": (0.5, 0.5)}, "one value per channel"),
    ],
)
def test_error_bad_settings(unchecked_shapes, options, message):
    with pytest.raises(ValueError, match=message):
        Mix(**options)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.zeros(2).long(), "float tensor.*uint8"),
        (torch.zeros(3, 8, 8), torch.zeros(3).long(), r"\[B, C, H, W\]; got \[3, 8, 8\]"),
        (torch.zeros(2, 3, 8, 8), torch.zeros(3).long(), "2 images but 3 labels"),
        (torch.zeros(2, 3, 8, 8), torch.tensor([0, 9]), "label 9 at position 1"),
        (torch.zeros(2, 3, 8, 8), torch.zeros(2, 1).long(), r"squeeze\(1\)"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_error_bad_batches(x, y, message):
    with pytest.raises(ValueError, match=message):
        Mix("mixup", CLASSES)(x, y)


def test_error_indices_without_the_number_of_classes():
    with pytest.raises(ValueError, match=r"classes=N.*mix\.pairs"):
        Mix("mixup")(*batch())


def test_error_what_a_policy_lacks_is_named():
    x, y = batch()
    with pytest.raises(ValueError, match="saliency.*model=your_model"):
        Mix("puzzlemix", CLASSES)(x, y)
    with pytest.raises(ValueError, match=r"pixels in \[0, 1\].*mean= and std="):
        Mix("saliencymix", CLASSES)(x * 4 - 2, y)
    with pytest.raises(ValueError, match="needs attention, which"):
        Mix("tokenmix", CLASSES, model=network("mixup"))(x, y)
    with pytest.raises(ValueError, match="AttentiveMix needs maps"):
        Mix("attentivemix", CLASSES, model=network("mixup"))(x, y)


def test_value_the_model_is_left_as_it_was():
    mix, (x, y) = build("puzzlemix"), batch()
    model = mix.supplier.network
    before = {key: value.clone() for key, value in model.state_dict().items()}
    mix(x, y)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert model.training and all(p.requires_grad and p.grad is None for p in model.parameters())


def test_value_every_policy_is_a_name_of_the_package():
    assert samix.Mix is Mix
    for kind in MIXUPS.values():
        assert getattr(samix, kind.__name__) is kind and kind.__name__ in samix.__all__


def test_value_a_switching_policy_is_its_members():
    mix = Mix({"mixup+cutmix": 0.5, "fmix": 0.5}, CLASSES)
    assert [type(policy).__name__ for policy in mix.policy.members] == ["MixUp", "CutMix", "FMix"]
    assert mix.policy.odds == pytest.approx((0.25, 0.25, 0.5))
    assert [policy.alpha for policy in mix.policy.members[:2]] == [0.8, 1.0]


class Looking(samix.mixups.Policy):
    """Mixes by a half, and has seen pixels."""

    needs = ("pixels",)

    def mask(self, x, pairing, hints, generator):
        return torch.full((len(x), 1, *x.shape[-2:]), 0.5)


@pytest.mark.parametrize(
    ("scale", "shift"),
    [(1.0, 0.0), (255.0, 0.0), (1 / 0.05, -0.45 / 0.05)],
    ids=["pixels", "bytes", "other std"],
)
def test_value_warns_once_of_images_that_were_normalised_otherwise(scale, shift):
    x, y = torch.rand(4, 3, 8, 8) * scale + shift, torch.arange(4)
    mix = samix.Mix(Looking(), classes=4, mean=[0.45] * 3, std=[0.22] * 3)
    with pytest.warns(
        UserWarning, match=r"looks at pixels in \[0, 1\], but the images lie in .*give Mix the numbers"
    ):
        mix(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mix(x, y)


@pytest.mark.parametrize("policy", ["mixup", Looking()])
def test_invariant_no_warning_for_images_that_were_normalised_so(policy):
    pixels, y = torch.rand(4, 3, 8, 8), torch.arange(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        samix.Mix(policy, classes=4, mean=[0.45] * 3, std=[0.22] * 3)((pixels - 0.45) / 0.22, y)
        samix.Mix(policy, classes=4)(pixels, y)
