"""Labels of every kind: classes, numbers, maps, and several heads at once."""

import pytest
import torch
from torch.nn import functional as F

from samix import Mix
from samix.mix.targets import mix_target


def batch(count: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(count, 3, 8, 8), torch.arange(count)


def mixed_by(policy: str = "cutmix", mode: str = "elem"):
    x, y = batch()
    mixed = Mix(policy, 6, mode=mode, generator=torch.Generator().manual_seed(2)).mixed(x, y)
    return mixed, mixed.pairing.lam.expand(6), mixed.pairing.index


@pytest.mark.parametrize("mode", ["batch", "elem"])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_numbers_are_weighed_by_lam(shape, dtype, mode):
    mixed, lam, index = mixed_by(mode=mode)
    y = torch.rand(6, *shape).to(dtype)
    found = mix_target(mixed, y)
    for i in range(6):
        expected = lam[i] * y[i] + (1 - lam[i]) * y[index[i]]
        torch.testing.assert_close(found[i], expected.to(found.dtype))
    assert found.dtype == (dtype if len(shape) != 1 else torch.float32)  # rows are float32, as class rows


def test_value_several_heads_in_tuples_lists_and_dictionaries():
    mixed, lam, index = mixed_by()
    classes, numbers = torch.arange(6) % 3, torch.rand(6)
    rows = F.one_hot(classes, 3).float()
    expected_rows = lam[:, None] * rows + (1 - lam[:, None]) * rows[index]
    expected_numbers = lam * numbers + (1 - lam) * numbers[index]
    for given, number in [
        ((classes, numbers), (3, None)),
        ([classes, numbers], [3, None]),
        ({"a": classes, "b": numbers}, {"a": 3, "b": None}),
        ({"a": classes, "b": (numbers,)}, {"a": 3, "b": None}),
    ]:
        found = mix_target(mixed, given, number)
        assert type(found) is type(given)
        first, second = found.values() if isinstance(found, dict) else found
        torch.testing.assert_close(first, expected_rows)
        torch.testing.assert_close(second[0] if isinstance(second, tuple) else second, expected_numbers)


def test_value_one_number_of_classes_serves_all_heads():
    x, y = batch()
    first, second = Mix("mixup", 6)(x, (y, y.flip(0)))[1]
    assert first.shape == second.shape == (6, 6)


def test_value_pairs_of_several_heads():
    x, y = batch()
    _, y_a, y_b, lam = Mix("mixup").pairs(x, {"digit": y, "angle": y.float()})
    assert torch.equal(y_a["digit"], y) and torch.equal(y_b["angle"], y_b["digit"].float()) and len(lam) == 1


@pytest.mark.parametrize("integers", [True, False])
def test_value_maps_of_the_images_size_follow_the_mask(integers):
    x, _ = batch()
    maps = torch.randint(5, (6, 8, 8))
    maps = maps if integers else maps.float()
    mix = Mix("cutmix", generator=torch.Generator().manual_seed(3))
    _, found = mix(x, maps)
    mixed = Mix("cutmix", generator=torch.Generator().manual_seed(3)).mixed(x, maps)
    hole = mixed.mask[0, 0] == 0
    assert found.dtype == maps.dtype and hole.any()
    assert torch.equal(found[:, ~hole], maps[:, ~hole])
    assert torch.equal(found[:, hole], maps[mixed.pairing.index][:, hole])


def test_value_binary_labels_as_numbers():
    x, y = torch.rand(2, 3, 8, 8), torch.tensor([0.0, 1.0])
    _, found = Mix("mixup")(x, y)
    assert float(found.sum()) == pytest.approx(1) and found.requires_grad is False


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0, 1, 2, 3, 4, 5], {"classes": 6}, r"got int. Write torch.as_tensor\(y\)"),
        (torch.arange(6).numpy(), {"classes": 6}, r"got ndarray. Write torch.as_tensor\(y\)"),
        ("words", {"classes": 6}, "labels must be tensors; got str"),
        (torch.arange(5), {"classes": 6}, "6 images but 5 labels"),
        (torch.tensor(3), {"classes": 6}, "6 images but no labels"),
        ((torch.arange(6), torch.arange(4)), {"classes": 6}, "6 images but 4 labels"),
        (torch.rand(6), {"classes": 6}, "numbers to regress, which have no classes"),
        (torch.rand(6), {"smoothing": 0.1}, "numbers to regress.*no smoothing"),
        ((torch.arange(6), torch.arange(6)), {"classes": (6,)}, r"no number for the labels 1; got \(6,\)"),
        ({"a": torch.arange(6)}, {"classes": {"b": 6}}, "no number for the labels 'a'"),
        (torch.arange(6), {}, r"classes=N.*mix\.pairs"),
    ],
)
def test_error_labels_that_cannot_be_mixed(y, options, message):
    with pytest.raises(ValueError, match=message):
        Mix("mixup", **options)(batch()[0], y)


@pytest.mark.parametrize("y", [torch.rand(6), (torch.arange(6),)], ids=["numbers", "heads"])
def test_error_a_saliency_needs_classes(y):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 6))
    with pytest.raises(ValueError, match=r"looks at a classifier's loss.*\[B\] or rows"):
        Mix("puzzlemix", model=model)(batch()[0], y)
