"""The Mixer against a loop of SAMix Eqs. (9)-(11), its gradients and its precision."""

import math
import re

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.learned.mixer import (
    AdaptiveLam,
    ConcatLam,
    CrossAttention,
    Mixer,
    MixerConfig,
    MixingAttention,
    NoLam,
    attention_weights,
    linear_content,
    nonlinear_content,
    rescale_lam,
    upsample_mask,
)


def ring(batch: int) -> Tensor:
    return torch.arange(batch).roll(1)


def pairing(batch: int, lam: float | None = None) -> Pairing:
    """One lam for the batch, or one per sample."""
    return Pairing(torch.linspace(0.1, 0.9, batch) if lam is None else torch.tensor([lam]), ring(batch))


def lively_mixer(channels: int = 4, gamma: float = 0.7) -> Mixer:
    """A Mixer with large weights, so that its masks are far from constant."""
    mixer = MixerConfig(init_std=1.0).build(channels)
    nn.init.constant_(mixer.gamma, gamma)  # the configuration refuses values outside [0, 1]
    return mixer


def conv1x1(conv: nn.Conv2d, pixel: list[float]) -> list[float]:
    weight, bias = conv.weight[:, :, 0, 0].tolist(), conv.bias.tolist()
    return [
        sum(w * v for w, v in zip(row, pixel, strict=True)) + b for row, b in zip(weight, bias, strict=True)
    ]


def loop_low_mask(mixer: Mixer, z_i: Tensor, z_j: Tensor, lam: float) -> list[float]:
    """sigmoid(P c_i) of one pair in evaluation mode, position by position."""
    gamma = mixer.gamma.item()
    first = [[(1 + gamma * lam) * v for v in p] for p in z_i.flatten(1).T.tolist()]  # Eq. (9)
    second = [[(1 + gamma * (1 - lam)) * v for v in p] for p in z_j.flatten(1).T.tolist()]
    embedded = [conv1x1(mixer.attention.query, a + b) for a, b in zip(first, second, strict=True)]
    conv, norm, _, _, last = mixer.content
    weight, bias = norm.weight.tolist(), norm.bias.tolist()
    mean, variance = norm.running_mean.tolist(), norm.running_var.tolist()
    content = []
    for position in first:
        hidden = conv1x1(conv, position)
        for c, value in enumerate(hidden):
            normed = (value - mean[c]) / math.sqrt(variance[c] + norm.eps)
            hidden[c] = max(normed * weight[c] + bias[c], 0)
        content.append(conv1x1(last, hidden)[0])
    mask = []
    for query in embedded:  # Eqs. (10) and (11)
        logits = [
            sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in embedded
        ]
        weights = [math.exp(v - max(logits)) for v in logits]
        value = sum(w * c for w, c in zip(weights, content, strict=True)) / sum(weights)
        mask.append(1 / (1 + math.exp(-value)))
    return mask


def loop_bilinear(values: list[list[float]], height: int, width: int) -> list[list[float]]:
    """Bilinear interpolation with pixel centres at half integers (align_corners off)."""

    def neighbours(place: int, size: int, out: int) -> tuple[int, int, float]:
        source = max((place + 0.5) * size / out - 0.5, 0)
        low = min(int(source), size - 1)
        return low, min(low + 1, size - 1), source - low

    rows = []
    for row in range(height):
        top, bottom, down = neighbours(row, len(values), height)
        line = []
        for column in range(width):
            left, right, across = neighbours(column, len(values[0]), width)
            upper = values[top][left] * (1 - across) + values[top][right] * across
            lower = values[bottom][left] * (1 - across) + values[bottom][right] * across
            line.append(upper * (1 - down) + lower * down)
        rows.append(line)
    return rows


@pytest.mark.parametrize("lam", [None, 0.3], ids=["lam per sample", "one lam"])
@pytest.mark.parametrize("size", [(2, 3), (6, 9), (7, 5)])
def test_value_against_a_loop(lam, size):
    mixer = lively_mixer()
    norm = mixer.content[1]
    for tensor in (norm.running_mean, norm.weight.data, norm.bias.data):
        tensor.normal_()
    norm.running_var.uniform_(0.5, 2)
    mixer.eval()
    z, pair = torch.randn(3, 4, 2, 3), pairing(3, lam)
    masks = mixer(z, pair, size)
    assert masks.std() > 0.02, "the example should not be constant"
    for i in range(3):
        low = loop_low_mask(mixer, z[i], z[pair.index[i]], float(pair.lam[i % len(pair.lam)]))
        expected = torch.tensor(loop_bilinear([low[:3], low[3:]], *size))
        torch.testing.assert_close(masks[i, 0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(8, 8), (32, 32), (33, 47), (5, 3), (1, 1)])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_shape_any_image_size_and_batch(mode, size, batch):
    mixer = Mixer(AdaptiveLam(1.0), MixingAttention(4, 2), nonlinear_content(4, 2), upsample=mode)
    mixer.train()
    mask = mixer(torch.randn(batch, 4, 4, 6), pairing(batch), size)
    assert mask.shape == (batch, 1, *size)
    assert mask.min() >= 0 and mask.max() <= 1 and mask.isfinite().all()


def test_value_a_batch_of_one_is_its_own_partner():
    mixer = lively_mixer().train()
    mask = mixer(torch.randn(1, 4, 4, 4), Pairing(torch.tensor([0.5]), torch.tensor([0])), (16, 16))
    assert mask.isfinite().all() and mask.std() > 0


def test_value_the_mask_is_deaf_to_lam_at_gamma_zero_and_hears_it_above():
    z = torch.randn(3, 4, 4, 4)

    def change(gamma: float) -> float:
        mixer = lively_mixer(gamma=gamma).eval()
        change = mixer(z, pairing(3, 0.1), (8, 8)) - mixer(z, pairing(3, 0.9), (8, 8))
        return change.abs().max().item()

    assert change(0.0) == 0.0
    assert change(0.5) > 1e-3


def test_value_without_encoding_the_mask_is_deaf_to_lam():
    mixer = Mixer(NoLam(), MixingAttention(4, 2), nonlinear_content(4, 2))
    z = torch.randn(3, 4, 4, 4)
    mixer.eval()
    assert torch.equal(mixer(z, pairing(3, 0.1), (8, 8)), mixer(z, pairing(3, 0.9), (8, 8)))
    assert mixer.gamma is None
    mixer.project()  # nothing to project, and no error


def test_gradient_gamma_moves_from_zero():
    mixer = lively_mixer(gamma=0.0)
    mixer(torch.randn(3, 4, 4, 4), pairing(3, 0.3), (8, 8)).square().sum().backward()
    assert mixer.gamma.grad is not None and float(mixer.gamma.grad.abs()) > 1e-3


@pytest.mark.parametrize("gamma", [-0.5, 1.5])
def test_gradient_gamma_lives_outside_its_range(gamma):
    """A clamp in the forward pass would have no gradient there."""
    mixer = lively_mixer(gamma=gamma)
    mixer(torch.randn(3, 4, 4, 4), pairing(3, 0.3), (8, 8)).square().sum().backward()
    assert float(mixer.gamma.grad.abs()) > 1e-3


@pytest.mark.parametrize(("before", "after"), [(-0.5, 0.0), (0.25, 0.25), (1.5, 1.0)])
def test_value_project(before, after):
    mixer = lively_mixer(gamma=before)
    mixer.project()
    assert mixer.gamma.item() == after and mixer.gamma.requires_grad


def test_gradient_reaches_every_parameter_and_the_maps():
    mixer = lively_mixer()
    z = torch.randn(3, 4, 4, 4, requires_grad=True)
    weights = torch.randn(3, 1, 8, 8)
    (mixer(z, pairing(3), (8, 8)) * weights).sum().backward()
    for name, parameter in mixer.named_parameters():
        assert parameter.grad is not None, name
        if name != "content.0.bias":  # batch norm takes this one out again
            assert parameter.grad.abs().max() > 0, name
    assert z.grad is not None and z.grad.abs().max() > 0


def test_gradient_against_finite_differences():
    mixer = lively_mixer(gamma=0.3).eval()
    z, weights = torch.randn(2, 4, 3, 3), torch.randn(2, 1, 6, 6)

    def loss() -> Tensor:
        return (mixer(z, pairing(2), (6, 6)) * weights).sum()

    loss().backward()
    step = 1e-2
    with torch.no_grad():
        mixer.gamma.add_(step)
        above = loss()
        mixer.gamma.sub_(2 * step)
        below = loss()
    assert float((above - below) / (2 * step)) == pytest.approx(float(mixer.gamma.grad), rel=0.05, abs=1e-3)


def test_invariant_constant_content_gives_a_constant_mask():
    """P is a convex average: the trivial solution."""
    mixer = lively_mixer()
    nn.init.zeros_(mixer.content[-1].weight)
    nn.init.constant_(mixer.content[-1].bias, 0.8)
    mask = mixer(torch.randn(3, 4, 4, 4), pairing(3), (9, 7))
    torch.testing.assert_close(mask, torch.full_like(mask, torch.tensor(0.8).sigmoid().item()))


def test_invariant_the_mask_stays_between_the_extremes_of_the_content():
    mixer = lively_mixer().eval()
    z, pair = torch.randn(3, 4, 4, 4), pairing(3)
    content = mixer.content(mixer.encoding(z, pair.lam)).sigmoid().flatten(1)
    mask = mixer(z, pair, (16, 16)).flatten(1)
    assert (mask.amax(dim=1) <= content.amax(dim=1) + 1e-6).all()
    assert (mask.amin(dim=1) >= content.amin(dim=1) - 1e-6).all()


def test_invariant_attention_rows_are_distributions():
    attention = attention_weights(torch.randn(2, 5, 3, 4), torch.randn(2, 5, 3, 4))
    assert attention.shape == (2, 12, 12) and attention.min() >= 0
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(2, 12))


def test_value_attention_normalises_over_the_keys_of_its_own_query():
    query, key = torch.randn(1, 3, 1, 4), torch.randn(1, 3, 1, 4)
    attention = attention_weights(query, key)
    for n in range(4):
        logits = torch.stack([query[0, :, 0, n] @ key[0, :, 0, m] for m in range(4)]) / 3**0.5
        torch.testing.assert_close(attention[0, n], logits.softmax(dim=0))


def test_value_attention_of_opposite_giants_stays_finite():
    giant = torch.full((1, 4, 2, 2), 1e4)
    giant[..., 0] *= -1
    assert attention_weights(giant, giant).isfinite().all()


def test_value_mixing_attention_reads_both_images():
    attention, z = MixingAttention(4, 2), torch.randn(2, 4, 3, 3)
    assert not torch.allclose(attention(z, z), attention(z, z + torch.randn_like(z)))
    assert not torch.allclose(attention(z, z), attention(z + torch.randn_like(z), z))


def test_value_separate_key_is_a_projection_of_its_own():
    attention, z_i, z_j = (
        MixingAttention(4, 2, separate_key=True),
        torch.randn(2, 4, 3, 3),
        torch.randn(2, 4, 3, 3),
    )
    both = torch.cat([z_i, z_j], dim=1)
    torch.testing.assert_close(
        attention(z_i, z_j), attention_weights(attention.query(both), attention.key(both))
    )


def test_value_the_official_mixer_is_a_configuration():
    mixer = MixerConfig(attention="mixing-two", sigmoid_last=True, rescale=0.25, init_std=0.5).build(4).eval()
    z, pair = torch.randn(3, 4, 4, 4), pairing(3)
    assert mixer.attention.key is not None and mixer.encoding.rescale == 0.25
    content, attention = mixer.parts(z, pair)
    low = (attention @ content.flatten(2).mT).mT.view_as(content)
    torch.testing.assert_close(mixer(z, pair, (8, 8)), upsample_mask(low, (8, 8), "bilinear").sigmoid())


def test_value_rescaled_lam():
    fixed = torch.tensor([0.0, 0.5, 1.0])
    for k in (0.25, 1.0):
        torch.testing.assert_close(rescale_lam(fixed, k), fixed)
    quarter = torch.tensor([0.25])
    torch.testing.assert_close(rescale_lam(quarter, 0.25), torch.tensor([0.357]), atol=1e-3, rtol=0)
    torch.testing.assert_close(rescale_lam(quarter, 1.0), torch.tensor([0.297]), atol=1e-3, rtol=0)
    z = torch.randn(1, 4, 3, 3)
    torch.testing.assert_close(
        AdaptiveLam(1.0, rescale=0.25)(z, quarter), (1 + rescale_lam(quarter, 0.25)) * z
    )


def test_value_cross_attention_asks_from_the_partner():
    attention, z_i, z_j = CrossAttention(4, 2), torch.randn(2, 4, 3, 3), torch.randn(2, 4, 3, 3)
    expected = attention_weights(attention.project(z_j), attention.project(z_i))
    torch.testing.assert_close(attention(z_i, z_j), expected)


@pytest.mark.parametrize("lam", [torch.tensor([0.3]), torch.tensor([0.1, 0.9])])
def test_value_lam_encodings(lam):
    z = torch.randn(2, 4, 3, 3)
    scale = 1 + 0.5 * lam.expand(2)[:, None, None, None]
    torch.testing.assert_close(AdaptiveLam(0.5)(z, lam), scale * z)
    concat = ConcatLam()(z, lam)
    assert torch.equal(concat[:, :4], z)
    assert torch.equal(concat[:, 4], lam.expand(2)[:, None, None].expand(2, 3, 3))
    assert torch.equal(NoLam()(z, lam), z)


def test_value_content_dropout_stands_before_the_last_convolution():
    content = nonlinear_content(4, 64, dropout=0.5).train()
    out = content(torch.randn(2, 4, 8, 8))
    assert (out != 0).all(), "dropout behind the last convolution would punch holes"
    assert linear_content(4)(torch.randn(2, 4, 8, 8)).shape == (2, 1, 8, 8)


@pytest.mark.parametrize("size", [(8, 8), (5, 9)])
def test_value_upsample_mask_nearest_copies_pixels(size):
    mask = torch.rand(1, 1, 2, 3)
    out = upsample_mask(mask, size, "nearest")
    for row in range(size[0]):
        for column in range(size[1]):
            assert out[0, 0, row, column] == mask[0, 0, row * 2 // size[0], column * 3 // size[1]]


def test_value_training_starts_near_mixup_with_lam_one_half():
    mask = MixerConfig(init_std=0.01).build(64)(torch.randn(4, 64, 8, 8).relu(), pairing(4), (32, 32))
    assert (mask - 0.5).abs().max() < 0.05


def test_value_autocast_leaves_the_mixer_in_float32():
    mixer, z = lively_mixer().eval(), torch.randn(3, 4, 4, 4).bfloat16()
    seen = []
    for part in (mixer.encoding, mixer.attention, mixer.content):
        part.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    expected = mixer(z.float(), pairing(3), (8, 8))
    with torch.autocast("cpu", torch.bfloat16):
        mask = mixer(z, pairing(3), (8, 8))
    assert set(seen) == {torch.float32} and mask.dtype == torch.float32
    assert torch.equal(mask, expected)


@pytest.mark.parametrize("encoding", ["adaptive", "concat", "none"])
@pytest.mark.parametrize("attention", ["mixing", "cross"])
@pytest.mark.parametrize("content", ["nonlinear", "linear"])
@pytest.mark.parametrize("upsample", ["bilinear", "nearest"])
def test_shape_every_combination_of_parts(encoding, attention, content, upsample):
    config = MixerConfig(encoding=encoding, attention=attention, content=content, upsample=upsample)
    mixer, z = config.build(6), torch.randn(3, 6, 4, 4)
    mask = mixer(z, pairing(3), (10, 14))
    assert mask.shape == (3, 1, 10, 14) and mask.min() >= 0 and mask.max() <= 1
    (mask * torch.randn_like(mask)).sum().backward()
    assert all(p.grad is not None for p in mixer.parameters())
    mixer.project()
    assert (mixer.gamma is None) == (encoding != "adaptive")


def test_value_the_config_reaches_the_parts():
    mixer = MixerConfig(gamma=0.25, dropout=0.3, reduction=4).build(16)
    assert mixer.gamma.item() == 0.25
    assert mixer.content[3].p == 0.3
    assert mixer.attention.query.weight.shape == (4, 32, 1, 1) and mixer.attention.key is None
    assert MixerConfig(reduction=64).build(16).attention.query.out_channels == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("encoding", "adaptiv", "unknown mixer.encoding 'adaptiv'. Did you mean 'adaptive'?"),
        ("attention", "mixin", "unknown mixer.attention 'mixin'. Did you mean 'mixing'?"),
        ("content", "liner", "unknown mixer.content 'liner'. Did you mean 'linear'?"),
        ("upsample", "bicubic", "unknown mixer.upsample 'bicubic'."),
        ("gamma", -0.1, "mixer.gamma must lie in [0, 1], got -0.1."),
        ("gamma", 1.1, "mixer.gamma must lie in"),
        ("dropout", 1.0, "mixer.dropout must lie in [0, 1), got 1.0."),
    ],
)
def test_error_bad_settings_are_refused_by_name(unchecked_shapes, field, value, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        MixerConfig(**{field: value})


def test_invariant_batch_norm_takes_a_common_lam_out_of_the_content():
    """Why learned policies draw one lam per pair: see docs/findings.md."""
    mixer = MixerConfig(gamma=1.0, init_std=1.0).build(8).train()
    z, index = torch.randn(6, 8, 4, 4), torch.arange(6).roll(1)

    def content(lam: torch.Tensor) -> torch.Tensor:
        return mixer.parts(z, Pairing(lam, index)).content

    common = [content(torch.tensor([lam])) for lam in (0.1, 0.9)]
    torch.testing.assert_close(common[0], common[1], rtol=1e-3, atol=1e-3)
    own = [content(torch.tensor(lams)) for lams in ([0.1, 0.9] * 3, [0.9, 0.1] * 3)]
    assert (own[0] - own[1]).abs().max() > 0.1
