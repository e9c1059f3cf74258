"""Pseudo labels: the cluster head's loss against a loop, and where its gradients go."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.learned.pseudo import Clusters, PseudoLabels

INDEX = torch.tensor([2, 0, 3, 1])


def build(labels: str = "pseudo", **fields) -> PseudoLabels:
    pseudo = PseudoLabels(30, 4, Clusters(**{"count": 3, "min_size": 2, "labels": labels} | fields))
    torch.nn.init.normal_(pseudo.head.weight)
    torch.nn.init.normal_(pseudo.head.bias)
    pseudo.begin(torch.randn(30, 4), torch.arange(30) % 2, seed=0)
    return pseudo


def log_softmax(pseudo: PseudoLabels, row: Tensor) -> list[float]:
    logits = (pseudo.head.weight @ row + pseudo.head.bias).tolist()
    total = math.log(sum(math.exp(value) for value in logits))
    return [value - total for value in logits]


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_head_loss_against_a_loop(lam):
    """O6: means weighted by class, so that rare clusters count more and the scale stays."""
    pseudo, (mixed, clean) = build(), torch.randn(2, 4, 4).unbind()
    pseudo.memory.labels.copy_(torch.tensor([0] * 20 + [1] * 7 + [2] * 3))
    y, weight = torch.tensor([0, 1, 2, 0]), [n**-0.5 for n in (20, 7, 3)]

    top = bottom = plain_top = plain_bottom = 0.0
    for i, j in enumerate(INDEX.tolist()):
        share, log_p = float(lam.expand(4)[i]), log_softmax(pseudo, mixed[i])
        for label, part in ((int(y[i]), share), (int(y[j]), 1 - share)):
            top -= part * weight[label] * log_p[label]
            bottom += part * weight[label]
        plain_top -= weight[y[i]] * log_softmax(pseudo, clean[i])[y[i]]
        plain_bottom += weight[y[i]]
    found = pseudo.head_loss(mixed, clean, y, Pairing(lam, INDEX))
    assert found.item() == pytest.approx(top / bottom + plain_top / plain_bottom, rel=1e-4)


def test_invariant_of_one_cluster_size_the_loss_is_a_plain_mean():
    pseudo, (mixed, clean) = build(), torch.randn(2, 4, 4).unbind()
    pseudo.memory.labels.copy_(torch.arange(30) % 3)
    y, lam = torch.tensor([0, 1, 2, 0]), torch.tensor([0.1, 0.5, 0.8, 1.0])
    first, second = (F.cross_entropy(pseudo.head(mixed), each, reduction="none") for each in (y, y[INDEX]))
    expected = (lam * first + (1 - lam) * second).mean() + F.cross_entropy(pseudo.head(clean), y)
    torch.testing.assert_close(pseudo.head_loss(mixed, clean, y, Pairing(lam, INDEX)), expected)


def test_gradient_of_the_head_loss_reaches_the_head_alone():
    pseudo, features = build(), torch.randn(2, 4, 4, requires_grad=True)
    y = torch.tensor([0, 1, 2, 0])
    pseudo.head_loss(*features.unbind(), y, Pairing(torch.tensor([0.3]), INDEX)).backward()
    assert features.grad is None and all(p.grad.abs().max() > 0 for p in pseudo.head.parameters())


def test_gradient_of_the_logits_reaches_the_features_alone():
    """O5: the official head also learns from the Mixer's loss."""
    pseudo, features = build(), torch.randn(4, 4, requires_grad=True)
    torch.testing.assert_close(pseudo.logits(features), pseudo.head(features))
    pseudo.logits(features).square().sum().backward()
    assert features.grad.abs().max() > 0 and all(p.grad is None for p in pseudo.head.parameters())


def test_value_pseudo_labels_are_the_memorys():
    pseudo, index = build(), torch.tensor([3, 17, 3])
    assert torch.equal(pseudo.labels(index), pseudo.memory.labels[index])


def test_value_true_labels_never_move():
    pseudo, index = build("true"), torch.arange(10)
    assert torch.equal(pseudo.labels(index), index % 2)
    pseudo.update(index, -pseudo.memory.features[:10])
    assert torch.equal(pseudo.labels(index), index % 2)


def test_value_update_moves_the_memory_of_these_pictures():
    pseudo, index = build(), torch.tensor([3, 17])
    before, keys = pseudo.memory.features.clone(), torch.randn(2, 4, requires_grad=True)
    pseudo.update(index, keys)
    moved = (pseudo.memory.features != before).any(dim=1).nonzero()[:, 0]
    assert moved.tolist() == [3, 17] and int(pseudo.memory.steps) == 1
    assert not pseudo.memory.features.requires_grad


def test_invariant_a_checkpoint_holds_memory_and_head_but_not_the_truth():
    pseudo, other = build(), PseudoLabels(30, 4, Clusters(count=3, min_size=2))
    assert not any("truth" in name for name in pseudo.state_dict())
    other.load_state_dict(pseudo.state_dict())
    other.begin(torch.randn(30, 4), torch.arange(30) % 2, seed=9)  # a memory is there: nothing is clustered
    for name, value in pseudo.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    assert torch.equal(other.truth, pseudo.truth)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"labels": "wrong"}, "unknown mixup.clusters.labels 'wrong'.*pseudo, deepcluster, true"),
        ({"momentum": 1.5}, r"clusters\.momentum must lie in \(0, 1\], got 1.5"),
        ({"momentum": 0.0}, r"clusters\.momentum must lie in \(0, 1\], got 0.0"),
    ],
)
def test_error_bad_settings_are_refused_by_name(unchecked_shapes, fields, message):
    with pytest.raises(ValueError, match=message):
        Clusters(**fields)


def test_value_deepcluster_labels_change_at_the_end_of_an_epoch_only():
    """Three groups that the first features do not show: k-means finds them once all keys have come."""
    pseudo = build("deepcluster", momentum=1.0)
    truth = torch.arange(30) % 3
    keys = torch.nn.functional.one_hot(truth, 4).float() + 0.01 * torch.randn(30, 4)
    before, head = pseudo.memory.labels.clone(), pseudo.head.weight.detach().clone()
    for step, batch in enumerate(torch.arange(30).split(10)):
        assert torch.equal(pseudo.labels(torch.arange(30)), before), step
        pseudo.update(batch, keys[batch])
        assert torch.equal(pseudo.head.weight, head)
        pseudo.after_step()
    found = pseudo.labels(torch.arange(30))
    assert {len(found[truth == group].unique()) for group in range(3)} == {1}
    assert len(found.unique()) == 3
    assert (
        0 < float(pseudo.head.weight.detach().abs().max()) < 0.1
    )  # a fresh head: the old one knew other labels
    torch.testing.assert_close(pseudo.memory.features, F.normalize(keys, dim=1))
    again = pseudo.head.weight.detach().clone()
    pseudo.update(torch.arange(10), keys[:10])
    pseudo.after_step()  # in the middle of an epoch nothing is due
    assert torch.equal(pseudo.head.weight, again)


def test_error_true_labels_of_a_set_that_has_none():
    pseudo = PseudoLabels(30, 4, Clusters(count=3, min_size=2, labels="true"))
    with pytest.raises(ValueError, match=r"mixup\.clusters\.labels is 'true', but .* have no labels"):
        pseudo.begin(torch.randn(30, 4), torch.zeros(30, dtype=torch.long), seed=0)
