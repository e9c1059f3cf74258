"""SAMix-C: gradients with a cluster head, labels before the update, and its ablations against loops."""

import math

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.learned import Speed
from samix.learned.mixer import MixerConfig
from samix.learned.pseudo import Clusters
from samix.learned.samix_c import ClusterMixup, SAMixC
from samix.methods.ssl.base import Terms, views_of

INDEX = torch.tensor([2, 0, 3, 1])
PICTURES = 24


@pytest.fixture
def samix_c(selfsup):
    """Builds SAMix-C around a method by name, with a memory of 24 pictures in 4 clusters."""

    def build(name: str = "moco-v2", terms: Terms | None = None, labels: str = "pseudo", **fields) -> SAMixC:
        clusters = Clusters(count=4, min_size=2, labels=labels)
        fields = {"mixer": MixerConfig(init_std=0.5), "negatives": 10, "clusters": clusters} | fields
        settings = ClusterMixup(**fields)
        mixer = settings.mixer.build(8)
        model = SAMixC(selfsup(name), mixer, settings, terms, dim=8, pictures=PICTURES)
        nn.init.normal_(model.pseudo.head.weight)
        model.pseudo.begin(torch.randn(PICTURES, 8), torch.arange(PICTURES) % 4, seed=0)
        return model

    return build


def test_gradient_of_the_encoder_loss_reaches_method_and_head(samix_c, method_name, two_views, gradients):
    model = samix_c(method_name)
    losses = model(*two_views(6))
    for part in (model.method, model.pseudo.head):
        assert all(grad is not None for grad in gradients(losses.encoder, part).values())
    assert all(grad.abs().max() > 0 for grad in gradients(losses.encoder, model.pseudo.head).values())
    assert all(grad is None for grad in gradients(losses.encoder, model.mixer).values())


def test_gradient_of_the_mixer_loss_reaches_exactly_the_mixer(samix_c, method_name, two_views, gradients):
    """O5: never the cluster head, through which the Mixer learns."""
    model = samix_c(method_name, instance=0.5)
    losses = model(*two_views(6))
    for part in (model.method, model.pseudo):
        assert all(grad is None for grad in gradients(losses.mixer, part).values())
    for name, grad in gradients(losses.mixer, model.mixer).items():
        assert grad is not None and (name == "content.0.bias" or grad.abs().max() > 0), name


def test_gradient_the_head_teaches_neither_encoder_nor_frozen_copy(samix_c, two_views, gradients):
    model = samix_c(terms=Terms(base=0.0, mixed=1e-30))
    losses = model(*two_views(6))
    assert all(grad.abs().max() < 1e-20 for grad in gradients(losses.encoder, model.method).values())
    losses.total.backward()
    assert all(p.grad is None for p in model.frozen_copy.parameters())


def loop_generation(logits: Tensor, y: list[int], lam: Tensor) -> tuple[float, float]:
    """pBCE of Eq. (6) over the two clusters of a pair, and mixup cross-entropy over all."""
    local = globally = 0.0
    for i, j in enumerate(INDEX.tolist()):
        weight, rows = float(lam.expand(4)[i]), [math.exp(value) for value in logits[i].tolist()]
        for label, part in ((y[i], weight), (y[j], 1 - weight)):
            globally -= part * math.log(rows[label] / sum(rows)) / 4
            if y[i] != y[j]:
                local -= part * math.log(rows[label] / (rows[y[i]] + rows[y[j]])) / 4
    return local, globally


@pytest.mark.parametrize(("eta", "local"), [(0.5, 1.0), (0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("labels", ["pseudo", "true"])
@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.5, 0.8, 1.0])])
def test_value_generation_loss_against_a_loop(samix_c, two_views, eta, local, labels, lam):
    model, (x, _) = samix_c(labels=labels, eta=eta, local=local), two_views()
    index = torch.tensor([4, 9, 8, 13])  # true labels 0, 1, 0, 1
    seen = model.method.observe(*views_of(x, index))
    mixed, keys = torch.randn(2, 4, 8).unbind()
    y = (index % 4 if labels == "true" else model.pseudo.memory.labels[index]).tolist()
    near, far = loop_generation(model.pseudo.head(mixed), y, lam)
    found = model.judge_embeddings(mixed, keys, Pairing(lam, INDEX), index, seen).generation
    assert found.local.item() == pytest.approx(near, rel=1e-4, abs=1e-6)
    assert found.globally.item() == pytest.approx(far, rel=1e-4)
    assert found.total.item() == pytest.approx(local * near + eta * far, rel=1e-4, abs=1e-6)


def loop_instances(mixed, keys, lam, negatives, labels, y, tau: float, *, drop: bool) -> float:
    """Eq. (4); where asked, without the negatives that have the positive's label."""
    m, k = ([row / row.norm() for row in rows] for rows in (mixed, keys))
    total = 0.0
    for i, other in enumerate(INDEX.tolist()):
        for j, weight in ((i, float(lam[i])), (other, 1 - float(lam[i]))):
            kept = [row for row, label in zip(negatives, labels, strict=True) if not (drop and label == y[j])]
            top = math.exp(float(m[i] @ k[j]) / tau)
            total -= weight * math.log(top / (top + sum(math.exp(float(m[i] @ n) / tau) for n in kept))) / 4
    return total


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("name", ["moco-v2", "byol"])
def test_value_the_instances_term_against_a_loop(samix_c, two_views, name, drop):
    model, (x, index) = samix_c(name, instance=0.7, drop_alike=drop), two_views()
    for step in range(2):
        model(*two_views(seed=step))  # fills the bank, 8 of 10
    seen = model.method.observe(*views_of(x, index))
    own = model.method.queue if name == "moco-v2" and not drop else model.bank
    y, lam = model.pseudo.labels(index).tolist(), torch.tensor([0.1, 0.5, 0.8, 1.0])
    mixed, keys = torch.randn(2, 4, 8).unbind()
    if drop:
        assert set(own.read_labels().tolist()) & set(y)
    instance = loop_instances(
        mixed, keys, lam, own.read(), own.read_labels().tolist(), y, model.method.tau, drop=drop
    )
    near, far = loop_generation(model.pseudo.head(mixed), y, lam)
    found = model.judge_embeddings(mixed, keys, Pairing(lam, INDEX), index, seen).generation
    assert found.total.item() == pytest.approx(near + 0.5 * far + 0.7 * instance, rel=1e-4)


def test_value_labels_are_read_before_the_update(samix_c, two_views, monkeypatch):
    """Whole step: generation and head loss see the labels that the memory had when the step began."""
    model, (x, index) = samix_c(drop_alike=True), two_views()
    # Every key is like the next cluster's centroid, and the memory follows at once.
    before = model.pseudo.memory.labels.clone()
    model.pseudo.memory.momentum = 1.0
    monkeypatch.setattr(model, "keys", lambda *_: model.pseudo.memory.centroids[(before[index] + 1) % 4])
    seen, head_loss = [], model.pseudo.head_loss
    monkeypatch.setattr(
        model.pseudo,
        "head_loss",
        lambda mixed, clean, y, pairing: (seen.append(y), head_loss(mixed, clean, y, pairing))[1],
    )
    model(x, index)
    assert torch.equal(seen[0], before[index])
    assert torch.equal(model.bank.read_labels()[:4], before[index])
    assert not torch.equal(model.pseudo.memory.labels[index], before[index])


def test_value_true_labels(samix_c, two_views, monkeypatch):
    model, seen = samix_c(labels="true"), []
    head_loss = model.pseudo.head_loss
    monkeypatch.setattr(
        model.pseudo,
        "head_loss",
        lambda mixed, clean, y, pairing: (seen.append(y), head_loss(mixed, clean, y, pairing))[1],
    )
    x, _ = two_views()
    model(x, torch.tensor([5, 2, 11, 20]))
    assert seen[0].tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_value_the_memory_takes_all_keys_of_the_batch(samix_c, method_name, two_views, fraction):
    model, (x, _) = samix_c(method_name, speed=Speed(fraction=fraction)), two_views()
    before, index = model.pseudo.memory.features.clone(), torch.tensor([3, 17, 20, 8])
    model(x, index).total.backward()
    moved = (model.pseudo.memory.features != before).any(dim=1).nonzero()[:, 0]
    assert moved.tolist() == [3, 8, 17, 20] and int(model.pseudo.memory.steps) == 1


def test_value_banks_exist_where_they_are_needed(samix_c):
    assert samix_c("moco-v2").bank is None
    assert samix_c("moco-v2", drop_alike=True).bank is not None
    assert samix_c("byol").bank is not None


def test_value_after_step_projects_gamma(samix_c):
    model = samix_c()
    nn.init.constant_(model.mixer.gamma, -0.3)
    model.after_step(0.0)
    assert model.mixer.gamma.item() == 0.0


def test_value_parameter_groups_hold_every_trained_parameter_once(samix_c, method_name):
    model = samix_c(method_name)
    groups = model.parameter_groups()
    listed = [id(p) for group in groups.values() for p in group]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert {id(p) for p in model.pseudo.head.parameters()} == {id(p) for p in groups["head"]}


def run(model: SAMixC, batches, steps: int = 3) -> None:
    optimizer = torch.optim.SGD([p for group in model.parameter_groups().values() for p in group], lr=0.1)
    for step in range(steps):
        torch.manual_seed(step)
        x, index = batches(4, seed=step)
        optimizer.zero_grad()
        model(x, (7 * step + index) % PICTURES, progress=step / steps).total.backward()
        optimizer.step()
        model.after_step((step + 1) / steps)


@pytest.mark.parametrize("name", ["moco-v2", "byol", "swav"])
def test_invariant_a_resumed_model_continues_bit_for_bit(samix_c, two_views, name):
    """Queue, bank, memory and centroids; the resumed run does not cluster again."""
    model = samix_c(name, drop_alike=True, instance=0.5)
    other = samix_c(name, drop_alike=True, instance=0.5)
    run(model, two_views)
    other.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
    for each in (model, other):
        run(each, two_views)
    for key, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[key]), key


def test_error_without_a_start_there_are_no_labels(selfsup, two_views):
    settings = ClusterMixup(clusters=Clusters(count=4, min_size=2))
    model = SAMixC(selfsup("byol"), settings.mixer.build(8), settings, dim=8, pictures=PICTURES)
    with pytest.raises(RuntimeError, match="no labels yet"):
        model(*two_views())


def test_value_auto_label_mixes_pairs_of_one_cluster_evenly(samix_c, two_views):
    """The official code's auto_label: within a cluster the mask is lam, between clusters it is learned."""
    model = samix_c(auto_label=True)
    (x, index), pairing = two_views(4), Pairing(torch.tensor([0.3, 0.6, 0.2, 0.7]), INDEX)
    model.pseudo.memory.labels[:4] = torch.tensor([1, 0, 1, 0])  # 0 and 2 are partners, 1 and 0, 3 and 1
    z = model.maps(x[:4])
    mixed = model.mix_pairs(x[:4], z, pairing, 0.5, index)
    for i, j in enumerate(INDEX.tolist()):
        even = torch.full((1, 16, 16), float(pairing.lam[i]))
        alike = int(model.pseudo.labels(index)[i]) == int(model.pseudo.labels(index)[j])
        assert torch.equal(mixed.mask[i], even) == alike
        torch.testing.assert_close(mixed.x[i], mixed.mask[i] * x[i] + (1 - mixed.mask[i]) * x[j])
    assert {int(y) for y in model.pseudo.labels(index)} == {0, 1}


def test_value_deepcluster_labels_come_with_the_epoch(samix_c, two_views):
    model = samix_c(clusters=Clusters(count=4, min_size=2, labels="deepcluster"))
    before = model.pseudo.memory.labels.clone()
    optimizer = torch.optim.SGD(model.pseudo.head.parameters(), lr=0.1)
    for step in range(6):  # 24 pictures in batches of 4
        x, index = two_views(4)
        assert torch.equal(model.pseudo.memory.labels, before)
        model(x, index + 4 * step).total.backward()  # nothing that the graph needs was changed in place
        optimizer.step()
        model.after_step(0.1)
    assert not torch.equal(model.pseudo.memory.labels, before)
