"""TransMix: CutMix's picture, the label weight of its code from one and the same forward pass."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samix.core.pairing import Pairing
from samix.methods.around.mixing import Mixing
from samix.methods.supervised import Supervised
from samix.mixups.cutmix import CutMix
from samix.mixups.transmix import TransMix, covered_attention
from samix.nn.attention import class_row
from samix.nn.encoder import Encoder


class TinyTransformer(nn.Module):
    """One attention layer with a class token over patches of `patch` pixels; counts its forward passes."""

    num_prefix_tokens = 1

    def __init__(self, patch: int = 4, classes: int = 5):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 8))
        self.attn = TinyAttention()
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, classes)
        self.passes: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append(x.detach().clone())
        patches = self.embed(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(x), -1, -1), patches], dim=1)
        return self.head(self.norm((tokens + self.attn(tokens))[:, 0]))


class TinyAttention(nn.Module):
    num_heads = 2

    def __init__(self):
        super().__init__()
        self.qkv, self.attn_drop = nn.Linear(8, 24), nn.Dropout(0.5)
        self.weights: Tensor | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        batch, count, _ = tokens.shape
        q, k, v = self.qkv(tokens).view(batch, count, 3, 2, 4).permute(2, 0, 3, 1, 4)
        weights = (3 * q @ k.transpose(-2, -1)).softmax(dim=-1)
        self.weights = weights.detach()  # [B, heads, n, n], before dropout
        return (self.attn_drop(weights) @ v).transpose(1, 2).flatten(2)


@pytest.fixture
def network() -> TinyTransformer:
    return TinyTransformer()


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def loop_weight(mask: Tensor, weights: Tensor, patch: int, area_weight: float) -> float:
    """w * area + (1 - w) * attention of one image, token by token; nearest is each token's first pixel."""
    height, width = mask.shape[-2:]
    rows, columns = height // patch, width // patch
    kept = total = 0.0
    for row in range(rows):
        for column in range(columns):
            token = 1 + row * columns + column
            attention = sum(float(head[0, token]) for head in weights) / len(weights)
            total += attention
            kept += attention * float(mask[0, row * patch, column * patch])
    return area_weight * float(mask.double().mean()) + (1 - area_weight) * kept / total


@pytest.mark.parametrize("area_weight", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (16, 32), (12, 8)])
def test_value_against_a_loop(network, size, per_sample, area_weight):
    x = torch.randn(5, 3, *size)
    lam = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9]) if per_sample else torch.tensor([0.4])
    outputs, mixed = TransMix(area_weight=area_weight).run(network, x, Pairing(lam, ring(5)))
    assert mixed.pairing.lam.shape == (5,)
    for i in range(5):
        mask = mixed.mask[i % len(mixed.mask)]
        expected = loop_weight(mask, network.attn.weights[i], 4, area_weight)
        assert float(mixed.pairing.lam[i]) == pytest.approx(expected, abs=1e-5)
    assert outputs.shape == (5, 5) and len(mixed.mask) == (5 if per_sample else 1)


def test_value_the_picture_is_that_of_cutmix(network):
    x, pairing = torch.randn(4, 3, 16, 16), Pairing(torch.tensor([0.3]), ring(4))
    _, mixed = TransMix().run(network, x, pairing, generator=torch.Generator().manual_seed(2))
    expected = CutMix(box="paper")(x, pairing, generator=torch.Generator().manual_seed(2))
    assert torch.equal(mixed.x, expected.x) and torch.equal(mixed.mask, expected.mask)
    assert torch.equal(mixed.pairing.index, pairing.index)


def test_value_the_attention_is_that_of_the_pass_that_gives_the_outputs(network):
    """One pass, on the mixed images, in training mode."""
    x, pairing = torch.randn(4, 3, 16, 16), Pairing(torch.tensor([0.3]), ring(4))
    torch.manual_seed(7)
    outputs, mixed = TransMix().run(network.train(), x, pairing, generator=torch.Generator())
    (seen,) = network.passes
    assert torch.equal(seen, mixed.x)
    torch.manual_seed(7)  # the same dropout: looking draws nothing
    assert torch.equal(network(mixed.x), outputs)


def test_value_even_attention_gives_the_area(network):
    nn.init.zeros_(network.attn.qkv.weight)
    x = torch.randn(3, 3, 64, 64)
    for seed in range(6):
        draw = torch.Generator().manual_seed(seed)
        _, mixed = TransMix(area_weight=0.0).run(
            network, x, Pairing(torch.tensor([0.5]), ring(3)), None, draw
        )
        # The box's edges fall between tokens of 4 px: 16 tokens a side, at most one row and column off.
        assert mixed.pairing.lam.tolist() == pytest.approx([float(mixed.mask.mean())] * 3, abs=0.13)


def test_value_attention_on_the_box_takes_the_label_away():
    mask = torch.ones(1, 1, 8, 8)
    mask[..., 4:, 4:] = 0
    attention = torch.zeros(2, 2, 2)
    attention[0, 1, 1] = attention[1, 0, 0] = 1
    assert covered_attention(mask, attention).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_value_golden(golden, seed, ratio):
    record = golden("g_transmix_32")
    keep = 1 - record[f"seed{seed}/cutmix_mask"]  # the official mask shows the partner
    attention = class_row(record["attn"], 1, (32, 32))
    covered = ratio * (1 - float(record[f"seed{seed}/cutmix_lam"]))
    lam = 1 - covered - (1 - ratio) * covered_attention(keep, attention)
    torch.testing.assert_close(lam, record[f"seed{seed}/ratio{ratio}/lam"].float(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("area_weight", [0.0, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_invariant_lam_one_keeps_image_and_label(network, dtype, area_weight):
    x = torch.randn(4, 3, 8, 12).to(dtype)
    lam = torch.tensor([1.0, 0.2, 1.0, 0.2])
    _, mixed = TransMix(area_weight=area_weight).run(network.to(dtype), x, Pairing(lam, ring(4)))
    assert torch.equal(mixed.x[::2], x[::2]) and (mixed.pairing.lam[::2] == 1).all()
    assert not torch.equal(mixed.x, x) and mixed.x.dtype == dtype
    assert mixed.pairing.lam.dtype == torch.float32
    assert (mixed.pairing.lam >= 0).all() and (mixed.pairing.lam <= 1).all()


def test_invariant_area_alone_is_cutmix_for_any_network():
    x, pairing = torch.randn(4, 3, 8, 12), Pairing(torch.tensor([0.3]), ring(4))
    plain = nn.Sequential(nn.Flatten(), nn.Linear(288, 5))
    _, mixed = TransMix(area_weight=1.0).run(plain, x, pairing, generator=torch.Generator().manual_seed(3))
    alone = TransMix(area_weight=1.0)(x, pairing, generator=torch.Generator().manual_seed(3))
    expected = CutMix(box="paper")(x, pairing, generator=torch.Generator().manual_seed(3))
    for ours in (mixed, alone):
        assert torch.equal(ours.x, expected.x) and torch.equal(ours.pairing.lam, expected.pairing.lam)


def test_invariant_a_seed_fixes_the_result_and_nothing_is_changed_in_place(network):
    network.eval()
    x = torch.randn(4, 3, 16, 16)
    before, copy = torch.get_rng_state(), x.clone()

    def run(seed: int) -> Tensor:
        draw = torch.Generator().manual_seed(seed)
        return TransMix().run(network, x, TransMix().draw(4, draw), None, draw)[1].pairing.lam

    assert torch.equal(run(1), run(1)) and not torch.equal(run(1), run(2))
    assert torch.equal(before, torch.get_rng_state()) and torch.equal(x, copy)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_shape_of_small_batches(network, batch):
    outputs, mixed = TransMix().run(network, torch.randn(batch, 3, 8, 8), TransMix().draw(batch))
    assert outputs.shape == (batch, 5) and mixed.pairing.lam.shape == (batch,)


def test_gradient_label_weights_carry_none(network):
    """The loss moves the logits only: its gradient is that of fixed weights."""
    x, y = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])
    outputs, mixed = TransMix().run(network, x, Pairing(torch.tensor([0.3]), ring(4)))
    assert outputs.requires_grad and not mixed.pairing.lam.requires_grad
    loss = mixed.loss(lambda out, target: F.cross_entropy(out, target, reduction="none"), outputs, y)
    (grad,) = torch.autograd.grad(loss, outputs)
    expected = (outputs.softmax(dim=1) - mixed.soft_labels(y, 5)) / 4
    torch.testing.assert_close(grad, expected)


def test_value_inside_a_method():
    network = TinyTransformer(classes=6)
    method = Supervised(Encoder(network, "embed"), nn.Linear(6, 5), classes=5)
    losses = Mixing(method, TransMix())(torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3]))
    losses.total.backward()
    assert losses.lam.shape == (4,) and len(network.passes) == 1
    assert all(parameter.grad is not None for parameter in method.parameters())


def test_error_images_alone(network):
    with pytest.raises(
        ValueError, match=r"policy\.run\(network, x, pairing\) or samix\.Mix\(\.\.\.\)\.forward"
    ):
        TransMix()(torch.randn(2, 3, 8, 8), Pairing(torch.tensor([0.5]), ring(2)))


def test_error_a_network_without_attention():
    with pytest.raises(ValueError, match="needs attention, which"):
        TransMix().run(nn.Flatten(), torch.randn(2, 3, 8, 8), Pairing(torch.tensor([0.5]), ring(2)))


@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_error_area_weight(value):
    with pytest.raises(ValueError, match=rf"mixup.area_weight must lie in \[0, 1\], got {value}"):
        TransMix(area_weight=value)


def test_value_attention_without_numbers_gives_way_to_the_area():
    mask = torch.ones(2, 1, 8, 8)
    mask[:, :, :4, :4] = 0
    attention = torch.stack([torch.full((4, 4), float("nan")), torch.rand(4, 4)])
    covered = covered_attention(mask, attention)
    assert float(covered[0]) == pytest.approx(0.25)
    assert float(covered[1]) == pytest.approx(float(attention[1, :2, :2].sum() / attention[1].sum()))
