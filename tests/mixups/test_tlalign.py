"""TL-Align: shares of labels through every block, against rows of labels carried token by token."""

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Supervised
from samix.mixups import TLAlign
from samix.mixups.cutmix import cutmix_mask
from samix.mixups.tlalign import align, first_shares
from samix.nn.attention import watching_tokens
from samix.nn.zoo import Network


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def network() -> nn.Module:
    torch.manual_seed(0)
    network = Network(name="small-vit", width=12).build(16).network
    for name, parameter in network.named_parameters():  # attention that differs between tokens
        if "qkv.weight" in name:
            nn.init.normal_(parameter, std=0.5)
    return network


def loop_labels(tokens: list[int], layers: list[Tensor], image: int) -> list[float]:
    """[weight of the own label, of the partner's] at the class token, as the official code carries rows."""
    area = sum(tokens) / len(tokens)
    rows = [[area, 1 - area], *([float(t), 1.0 - t] for t in tokens)]
    for weights in layers:
        aligned = [
            [sum(float(weights[image, q, k]) * rows[k][label] for k in range(len(rows))) for label in (0, 1)]
            for q in range(len(rows))
        ]
        rows = [
            [(new + old) / 2 for new, old in zip(row, before, strict=True)]
            for row, before in zip(aligned, rows, strict=True)
        ]
    return rows[0]


@pytest.mark.parametrize("lam", [[0.4], [0.1, 0.5, 0.8]])
def test_value_against_rows_of_labels(network, lam):
    x, index = torch.rand(3, 3, 16, 16, generator=seeded()), torch.tensor([1, 2, 0])
    outputs, mixed = TLAlign().run(network, x, Pairing(torch.tensor(lam), index), None, seeded(3))
    tokens = cutmix_mask((4, 4), torch.tensor(lam), seeded(3)).flatten(1).long().expand(3, -1)
    with watching_tokens(network) as layers:
        torch.testing.assert_close(network(mixed.x), outputs)
    for i in range(3):
        own, other = loop_labels(tokens[i].tolist(), layers, i)
        assert own + other == pytest.approx(1, abs=1e-5)
        assert float(mixed.pairing.lam[i]) == pytest.approx(own, abs=1e-5)
    assert mixed.pairing.lam.shape == (3,) and not mixed.pairing.lam.requires_grad


def test_value_the_box_follows_tokens(network):
    x, index = torch.rand(4, 3, 16, 16, generator=seeded()), torch.arange(4).roll(1)
    for seed in range(5):
        _, mixed = TLAlign().run(network, x, Pairing(torch.tensor([0.5]), index), None, seeded(seed))
        for row in range(4):
            for column in range(4):
                token = mixed.mask[0, 0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
                assert len(token.unique()) == 1
        torch.testing.assert_close(mixed.x, mixed.mask * x + (1 - mixed.mask) * x[index])


def test_value_even_attention_keeps_the_area():
    tokens = torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]])
    even = torch.full((2, 5, 5), 0.2)
    shares = first_shares(tokens, 2, 5)
    assert shares.tolist() == [[0.25, 1.0, 0.0, 0.0, 0.0]] * 2
    torch.testing.assert_close(align(shares, [even] * 3), torch.full((2,), 0.25))


def test_value_a_class_token_that_looks_at_the_first_image():
    weights = torch.eye(5)[None].clone()
    weights[0, 0] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])
    shares = first_shares(torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]]), 1, 5)
    assert align(shares, [weights]).tolist() == [(1 + 0.25) / 2]
    assert align(shares, [weights, weights]).tolist() == [(1 + (1 + 0.25) / 2) / 2]


def test_invariant_an_untouched_image_keeps_its_label(network):
    x = torch.rand(2, 3, 16, 16)
    pairing = Pairing(torch.tensor([1.0, 0.3]), torch.tensor([1, 0]))
    _, mixed = TLAlign().run(network, x, pairing)
    assert float(mixed.pairing.lam[0]) == 1.0 and torch.equal(mixed.x[0], x[0])


def test_invariant_a_bad_picture_has_a_label_by_area(network):
    x = torch.rand(3, 3, 16, 16)
    x[0] = float("nan")
    _, mixed = TLAlign().run(network, x, Pairing(torch.tensor([0.5]), torch.tensor([1, 2, 0])))
    assert mixed.pairing.lam.isfinite().all()


def test_value_a_transformer_learns_with_it():
    encoder = Network(name="small-vit", width=12).build(16)
    model = Mixing(Supervised(encoder, nn.Linear(encoder.probe(16)[1], 4), 4), TLAlign())
    losses = model(torch.rand(4, 3, 16, 16), torch.arange(4))
    losses.total.backward()
    assert losses.total.isfinite() and losses.lam is not None


def test_error_without_the_network_or_its_patches(network):
    pairing = Pairing(torch.tensor([0.5]), torch.tensor([1, 0]))
    with pytest.raises(ValueError, match=r"TLAlign weighs labels by the network's attention.*policy.run"):
        TLAlign()(torch.rand(2, 3, 16, 16), pairing)
    with pytest.raises(ValueError, match="tokens of 5 pixels, which do not fill 16 x 16 pixels"):
        TLAlign(patch=5).run(network, torch.rand(2, 3, 16, 16), pairing)
    with pytest.raises(ValueError, match="needs attention, which this network does not have"):
        TLAlign().run(nn.Conv2d(3, 4, 3), torch.rand(2, 3, 16, 16), pairing)
    layer = nn.MultiheadAttention(4, 2)
    layer.attn_drop = nn.Dropout()
    with pytest.raises(ValueError, match="needs a class token, which this network does not have"):
        TLAlign().run(layer, torch.rand(2, 3, 16, 16), pairing)
