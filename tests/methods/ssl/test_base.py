"""What all self-supervised methods share: views, directions, gradients, learning."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from samix.contract import Losses
from samix.methods.ssl.base import SelfSupervised, views_of
from samix.nn.zoo import build_encoder

DIRECTIONS = {"moco-v1": 1, "moco-v2": 1}


def before_norm(network: nn.Module) -> set[str]:
    """Biases that a batch norm right behind them takes out again: their gradient is 0."""
    names = set()
    for name, module in network.named_modules():
        if isinstance(module, nn.Sequential):
            for number, (layer, following) in enumerate(zip(module, module[1:], strict=False)):
                if isinstance(layer, nn.Linear) and isinstance(following, nn.BatchNorm1d):
                    names.add(f"{name}.{number}.bias".lstrip("."))
    return names


def test_value_the_two_views():
    x = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 3, 2, 2)
    first, second = views_of(x, torch.tensor([7, 3]))
    assert first[:, 0, 0, 0].tolist() == [0, 1] and second[:, 0, 0, 0].tolist() == [2, 3]


@pytest.mark.parametrize("images", [2, 3, 6])
def test_error_another_number_of_views(selfsup, method_name, images):
    message = rf"two views of every picture: 2 pictures need 4 images .* got {images}\."
    with pytest.raises(ValueError, match=message):
        selfsup(method_name)(torch.rand(images, 3, 16, 16), torch.arange(2))


def test_shape_predictions_and_targets(selfsup, method_name, two_views):
    method, (x, index) = selfsup(method_name), two_views(5)
    seen = method.observe(*views_of(x, index))
    directions = DIRECTIONS.get(method_name, 2)
    assert len(seen.predictions) == len(seen.targets) == directions
    assert all(len(rows) == 5 for rows in (*seen.predictions, *seen.targets))
    assert (seen.keys is None) == (method.momentum is None)
    assert (seen.negatives is None) == (method.queue is None)
    assert all(rows.requires_grad for rows in seen.predictions)
    assert all(rows.requires_grad == (method_name == "simclr") for rows in seen.targets)


def test_value_the_loss_is_the_sum_over_the_directions(selfsup, method_name, two_views):
    method, (x, index) = selfsup(method_name), two_views()
    seen = deepcopy(method).observe(*views_of(x, index))
    expected = sum(
        method.contrast(prediction, target, torch.arange(4), seen).mean()
        for prediction, target in zip(seen.predictions, seen.targets, strict=True)
    )
    losses = method(x, index)
    torch.testing.assert_close(losses.encoder, expected)
    assert losses == Losses(losses.encoder) and losses.total is losses.encoder


def test_gradient_reaches_exactly_the_online_parameters(selfsup, method_name, two_views, gradients):
    method, (x, index) = selfsup(method_name), two_views(6)
    found = gradients(method(x, index).encoder, method)
    assert not any(name.startswith(("momentum", "queue")) for name in found)
    silent = before_norm(method)
    for name, gradient in found.items():
        assert gradient is not None, name
        assert name in silent or gradient.abs().max() > 0, name
    if method.momentum is not None:
        assert not any(p.requires_grad for p in method.momentum.parameters())
    if method.queue is not None:
        assert not method.queue.read().requires_grad


def test_value_parameter_groups_hold_every_trained_parameter_once(selfsup, method_name):
    method = selfsup(method_name)
    listed = [id(p) for group in method.parameter_groups().values() for p in group]
    assert sorted(listed) == sorted(id(p) for p in method.parameters() if p.requires_grad)


def test_value_the_online_network_predicts(selfsup, method_name, two_views):
    method, (x, _) = selfsup(method_name), two_views()
    torch.testing.assert_close(method.online(x), method.predict(x))
    assert dict(method.online.named_modules())["encoder.network"] is method.encoder.network
    assert list(method.online.state_dict()) == [f"encoder.{name}" for name in method.encoder.state_dict()]


def test_value_targets_of_the_same_view(selfsup, method_name, two_views):
    """With both views swapped, the targets of the same view are those of the other one."""
    method, (x, index) = selfsup(method_name), two_views()
    first, second = views_of(x, index)
    seen = method.observe(first, second)
    same = method.same_view_targets(first, second, seen)
    swapped = method.observe(second, first)
    for found, expected in zip(same, swapped.targets, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_value_where_nobody_predicts_the_targets_stay(selfsup, method_name, two_views):
    method, (x, index) = selfsup(method_name), two_views()
    other = deepcopy(method)
    seen, silent = (
        each.observe(*views_of(x, index), predicting=predicting)
        for each, predicting in ((method, True), (other, False))
    )
    for expected, found in zip(seen.targets, silent.targets, strict=True):
        torch.testing.assert_close(found, expected)
    if method.momentum is not None:
        assert silent.predictions == ()


@pytest.mark.parametrize("count", [2, 7])
def test_value_any_batch(selfsup, method_name, two_views, count):
    method = selfsup(method_name)
    for step in range(2):
        losses = method(*two_views(count, seed=step), progress=step / 2)
        losses.total.backward()
        method.after_step(step / 2)
        assert losses.encoder.isfinite()
    assert all(p.grad.isfinite().all() for p in method.parameters() if p.grad is not None)


def test_value_images_that_are_not_square(selfsup, method_name):
    assert selfsup(method_name)(torch.rand(8, 3, 20, 28), torch.arange(4)).total.isfinite()


def test_value_bfloat16_autocast_gives_float32_losses(selfsup, method_name, two_views):
    method = selfsup(method_name)
    with torch.autocast("cpu", torch.bfloat16):
        losses = method(*two_views())
    assert losses.encoder.dtype == torch.float32
    losses.total.backward()
    assert all(p.grad.isfinite().all() for p in method.parameters() if p.requires_grad)


def run(method: SelfSupervised, batches, steps: int = 2) -> None:
    optimizer = torch.optim.SGD([p for g in method.parameter_groups().values() for p in g], lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        method(*batches(4, seed=step), progress=step / steps).total.backward()
        optimizer.step()
        method.after_step((step + 1) / steps)


def equal_states(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_invariant_a_seed_gives_one_result(selfsup, method_name, two_views):
    results = []
    for _ in range(2):
        torch.manual_seed(7)
        results.append(selfsup(method_name))
        run(results[-1], two_views)
    assert equal_states(*results)


def test_invariant_a_resumed_method_continues_bit_for_bit(selfsup, method_name, two_views):
    method, other = selfsup(method_name), selfsup(method_name)
    run(method, two_views)
    other.load_state_dict({name: value.clone() for name, value in method.state_dict().items()})
    for each in (method, other):
        run(each, two_views)
    assert equal_states(method, other)


@pytest.mark.slow
def test_value_learns(selfsup, method_name, two_views):
    """Eight pictures, always the same; the queue stays, because it would fill with their own keys."""
    method = selfsup(method_name, build_encoder("small-resnet", width=4))
    x, index = two_views(8)
    optimizer = torch.optim.SGD(method.parameter_groups()["encoder"], lr=0.1, momentum=0.9)
    losses = []
    for step in range(30):
        method.begin(step / 30)
        loss = method.loss(method.observe(*views_of(x, index)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        method.after_step(step / 30)
        losses.append(loss.item())
    early, late = sum(losses[:3]) / 3, sum(losses[-3:]) / 3
    assert late < early - 0.2 * abs(early), losses


def test_error_a_method_must_say_how_it_learns():
    method, x = SelfSupervised(), torch.rand(4, 3, 8, 8)
    for name, call in (("predict", lambda: method.predict(x)), ("observe", lambda: method.observe(x, x))):
        with pytest.raises(TypeError, match=f"SelfSupervised must define {name}"):
            call()
