"""MoCo: the loss against a loop, the queue, the momentum branch and shuffled keys."""

import math

import pytest
import torch
from torch import Tensor, nn

from samix.methods.ssl.base import views_of
from samix.methods.ssl.moco import MoCoV1, MoCoV2
from samix.nn.split_norm import SplitBatchNorm
from samix.nn.zoo import build_encoder


def unit(rows: Tensor) -> Tensor:
    return torch.stack([row / row.norm() for row in rows.detach()])


def loop_nce(query: Tensor, key: Tensor, others: Tensor, tau: float) -> float:
    positive = math.exp(float(query @ key) / tau)
    return -math.log(positive / (positive + sum(math.exp(float(query @ other) / tau) for other in others)))


@pytest.mark.parametrize("name", ["moco-v1", "moco-v2"])
def test_value_clean_loss_against_a_loop(selfsup, two_views, name):
    method, (x, index) = selfsup(name), two_views()
    first, second = views_of(x, index)
    q, k, negatives = unit(method.branch(first)), unit(method.momentum(second)), method.queue.read()
    expected = sum(loop_nce(q[i], k[i], negatives, method.tau) for i in range(4)) / 4
    assert method(x, index).encoder.item() == pytest.approx(expected, rel=1e-4)


def test_value_all_positives_in_one_softmax_against_a_loop(selfsup, two_views):
    """i-Mix's form: the other keys of the batch are negatives too."""
    method, (x, index) = selfsup("moco-v2"), two_views()
    seen, positive = method.observe(*views_of(x, index)), torch.tensor([2, 0, 3, 3])
    q, k = unit(seen.predictions[0]), seen.targets[0]
    expected = []
    for i, j in enumerate(positive.tolist()):
        others = torch.cat([k[[n for n in range(4) if n != j]], seen.negatives])
        expected.append(loop_nce(q[i], k[j], others, method.tau))
    found = method.shared_contrast(seen.predictions[0], k, positive, seen)
    assert found.tolist() == pytest.approx(expected, rel=1e-4)


def test_value_heads():
    assert (MoCoV1().tau, MoCoV1().hidden) == (0.07, None)
    assert (MoCoV2().tau, MoCoV2().hidden, MoCoV2().dim, MoCoV2().momentum) == (0.2, 2048, 128, 0.999)


def test_shape_heads(selfsup):
    one, two = selfsup("moco-v1").branch.projector, selfsup("moco-v2").branch.projector
    assert [type(layer) for layer in one] == [nn.Linear]
    assert [type(layer) for layer in two] == [nn.Linear, nn.ReLU, nn.Linear]
    assert all(layer.bias is not None for layer in (one[0], two[0], two[2]))


def contains(rows: Tensor, row: Tensor) -> bool:
    return bool((rows - row).abs().amax(dim=1).min() < 1e-6)


@pytest.mark.parametrize("length", [16, 7, 4, 3, 1], ids=lambda length: f"queue {length}")
def test_value_own_keys_come_into_the_queue_after_the_loss(selfsup, two_views, monkeypatch, length):
    """Batches of 4: the queue need not be divisible by them, nor as long."""
    method = selfsup("moco-v2", queue=length)
    seen, contrast = [], method.contrast

    def record(prediction, target, positive, observed):
        seen.append((target, observed.negatives))
        return contrast(prediction, target, positive, observed)

    monkeypatch.setattr(method, "contrast", record)
    for step in range(5):
        method(*two_views(4, seed=step))
    history = [row for keys, _ in seen for row in keys]
    for step, (keys, negatives) in enumerate(seen):
        assert len(negatives) == length
        assert not any(contains(negatives, key) for key in keys)
        assert all(contains(negatives, key) for key in history[: 4 * step][-length:])
    assert all(contains(method.queue.read(), key) for key in history[-length:])
    torch.testing.assert_close(method.queue.read().norm(dim=1), torch.ones(length))


def test_value_the_momentum_branch_follows_with_its_parameters_only(selfsup, two_views):
    method = selfsup("moco-v2", momentum=0.9)
    method(*two_views())  # batch norm of either branch lives on its own passes
    before = {name: value.clone() for name, value in method.momentum.state_dict().items()}
    method.after_step(0.3)
    trained = {name for name, _ in method.branch.named_parameters()}
    for name, value in method.momentum.state_dict().items():
        online = method.branch.state_dict()[name]
        expected = 0.9 * before[name] + 0.1 * online if name in trained else before[name]
        torch.testing.assert_close(value, expected, msg=name)
        assert name in trained or name.endswith("tracked") or not torch.equal(value, online)


def test_value_the_momentum_is_constant(selfsup):
    method, results = selfsup("moco-v2", momentum=0.5), []
    for progress in (0.0, 1.0):
        for parameter in method.momentum.parameters():
            nn.init.zeros_(parameter)
        method.after_step(progress)
        results.append([p.clone() for p in method.momentum.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_invariant_the_branches_start_equal():
    config = MoCoV2(queue=4, dim=3, hidden=5)
    method = config.build(build_encoder("small-resnet", width=4), 32)
    for name, value in method.branch.state_dict().items():
        assert torch.equal(value, method.momentum.state_dict()[name])


def test_value_groups_of_shuffled_keys(selfsup, two_views):
    """The keys come back in the order of the pictures, each from the group that the permutation gave it."""
    method, (x, _) = selfsup("moco-v2", norm_groups=2), two_views(4)
    for branch in (method.branch, method.momentum):
        norms = [module for module in branch.modules() if isinstance(module, nn.BatchNorm2d)]
        assert [type(module) for module in norms] == [SplitBatchNorm] * 2
    torch.manual_seed(3)
    found = method.keys(x)
    torch.manual_seed(3)
    order = torch.randperm(8)
    expected = torch.empty_like(found)
    for module in method.momentum.modules():
        if isinstance(module, SplitBatchNorm):
            module.groups = 1
    for part in (order[:4], order[4:]):
        expected[part] = method.momentum(x[part])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_invariant_shuffling_changes_statistics_only(selfsup, two_views):
    method, (x, _) = selfsup("moco-v2", norm_groups=2).eval(), two_views(4)
    torch.testing.assert_close(method.keys(x), method.momentum(x))


def test_invariant_one_group_draws_nothing(selfsup, two_views):
    method, state = selfsup("moco-v2"), torch.get_rng_state()
    method(*two_views())
    assert torch.equal(state, torch.get_rng_state())


def test_gradient_never_reaches_keys_or_queue(selfsup, two_views):
    method, (x, index) = selfsup("moco-v2"), two_views()
    seen = method.observe(*views_of(x, index))
    assert not any(rows.requires_grad for rows in (*seen.targets, seen.keys, seen.negatives))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("tau", 0.0, "be positive"),
        ("momentum", 1.5, r"lie in \[0, 1\]"),
        ("queue", 0, "be at least 1"),
        ("dim", 0, "be at least 1"),
        ("norm_groups", 0, "be at least 1"),
    ],
)
def test_error_bad_settings_are_refused_by_name(field, value, allowed):
    with pytest.raises(ValueError, match=rf"method\.{field} must {allowed}, got {value}"):
        MoCoV2(**{field: value})


def test_value_groups_are_those_of_all_processes(monkeypatch):
    """Eight groups on four processes: two on each, which see as many pictures as eight processes' would."""
    monkeypatch.setattr("samix.methods.ssl.moco.world", lambda: 4)
    method = MoCoV2(queue=4, dim=3, hidden=5, norm_groups=8).build(build_encoder("small-resnet", width=4), 32)
    groups = {m.groups for m in method.branch.modules() if isinstance(m, SplitBatchNorm)}
    assert groups == {2}
    method = MoCoV2(queue=4, dim=3, hidden=5, norm_groups=4).build(build_encoder("small-resnet", width=4), 32)
    assert not any(isinstance(m, SplitBatchNorm) for m in method.branch.modules())
