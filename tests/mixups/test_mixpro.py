"""MixPro: cells of its own for every image, and labels between area and attention, against loops."""

import math

import pytest
import torch
from torch import nn

from samix.core.pairing import Pairing
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Supervised
from samix.mixups import Hints, MixPro
from samix.mixups.mixpro import draw_cells, trust
from samix.nn.attention import watching_attention
from samix.nn.zoo import Network


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def network() -> nn.Module:
    torch.manual_seed(0)
    encoder = Network(name="small-vit", width=12).build(32)
    for name, parameter in encoder.named_parameters():  # attention that differs between tokens
        if "qkv.weight" in name:
            nn.init.normal_(parameter, std=0.5)
    return Supervised(encoder, nn.Linear(encoder.probe(32)[1], 5), 5).classifier


@pytest.mark.parametrize("lam, kept", [(0.0, 0), (0.01, 1), (0.25, 4), (0.26, 5), (0.7, 12), (1.0, 16)])
def test_value_how_many_cells_and_which(lam, kept):
    cells = draw_cells(4, torch.tensor([lam]), 40, seeded())
    assert cells.shape == (40, 1, 4, 4) and set(cells.unique().tolist()) <= {0.0, 1.0}
    assert (cells.sum(dim=(1, 2, 3)) == kept).all()
    assert len({tuple(each.flatten().tolist()) for each in cells}) > 10 or kept in (0, 16)
    if 0 < kept < 16:
        assert (cells.mean(dim=0) > 0).any() and float(cells.mean(dim=0).std()) < 0.25


def test_value_whole_numbers_of_cells_survive_float32():
    lam = torch.tensor([k / 25 for k in range(26)])
    assert draw_cells(5, lam, 26).sum(dim=(1, 2, 3)).tolist() == list(range(26))


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("lam", [[0.4], [0.1, 0.5, 0.8, 1.0]])
def test_value_against_a_loop(network, lam, soft):
    x, y, index = torch.rand(4, 3, 32, 32, generator=seeded()), torch.tensor([0, 4, 2, 2]), [2, 0, 3, 1]
    labels = torch.eye(5)[y] if soft else y
    pairing = Pairing(torch.tensor(lam), torch.tensor(index))
    outputs, mixed = MixPro().run(network, x, pairing, Hints(labels=labels), seeded(1))
    with watching_attention(network) as seen:
        network(mixed.x)
    for i, j in enumerate(index):
        mask = mixed.mask[i, 0]
        area = float(mask.double().mean())
        assert area == math.ceil(16 * lam[i % len(lam)] - 1e-4) / 16
        kept = sum(float(seen[-1][i, r, c]) for r in range(8) for c in range(8) if mask[4 * r, 4 * c] == 1)
        target = [area * (k == int(y[i])) + (1 - area) * (k == int(y[j])) for k in range(5)]
        p = outputs[i].softmax(dim=0).tolist()
        dot = sum(a * b for a, b in zip(target, p, strict=True))
        t = dot / math.sqrt(sum(a * a for a in target) * sum(b * b for b in p))
        expected = t * kept + (1 - t) * area
        assert float(mixed.pairing.lam[i]) == pytest.approx(expected, abs=1e-5)
        torch.testing.assert_close(mixed.x[i], mask * x[i] + (1 - mask) * x[j])
    assert not mixed.pairing.lam.requires_grad and outputs.requires_grad


def test_value_a_sure_and_right_network_is_trusted():
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    logits = torch.tensor([[50.0, 0.0], [0.0, 50.0], [3.0, 3.0]])
    torch.testing.assert_close(trust(rows, logits), torch.tensor([1.0, 0.0, 1.0]))


def test_invariant_untouched_and_bad_pictures(network):
    x = torch.rand(3, 3, 32, 32)
    x[2] = float("nan")
    pairing = Pairing(torch.tensor([1.0, 0.5, 0.5]), torch.tensor([1, 0, 1]))
    _, mixed = MixPro().run(network, x, pairing, Hints(labels=torch.arange(3)))
    assert float(mixed.pairing.lam[0]) == 1.0 and mixed.pairing.lam.isfinite().all()


def test_value_a_transformer_learns_with_it():
    encoder = Network(name="small-vit", width=12).build(16)
    model = Mixing(Supervised(encoder, nn.Linear(encoder.probe(16)[1], 4), 4), MixPro())
    losses = model(torch.rand(4, 3, 16, 16), torch.arange(4))
    losses.total.backward()
    assert losses.total.isfinite()


def test_error_without_network_labels_or_cells(network):
    pairing = Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    with pytest.raises(ValueError, match=r"MixPro weighs labels by the network's attention.*policy.run"):
        MixPro()(torch.rand(2, 3, 32, 32), pairing, Hints(labels=torch.arange(2)))
    with pytest.raises(ValueError, match="MixPro needs labels"):
        MixPro().run(network, torch.rand(2, 3, 32, 32), pairing)
    with pytest.raises(ValueError, match="mixup.cells must be at least 1, got 0"):
        MixPro(cells=0)
