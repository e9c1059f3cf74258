"""The Mixer against numbers recorded from the official code, for SAMix's and AutoMix's block.

The official blocks paint x[index] and take 1 minus it for x. Here those are the first images: the pair
changes places, lam becomes 1 - lam, and weights that read the concatenated pair swap their halves.
"""

import pytest
import torch
from torch import Tensor, nn

from samix.core.pairing import Pairing
from samix.learned.mixer import AdaptiveLam, ConcatLam, CrossAttention, Mixer, MixingAttention, linear_content

OFFICIAL = [0.1, 0.35, 0.5, 0.9]


def official_mixer(record: dict[str, Tensor], upsampling: str) -> Mixer:
    """The official SAMix block from our parts."""
    swapped = {name: record[f"w.{name}.conv.weight"].roll(32, dims=1) for name in ("query", "key")}
    attention = MixingAttention(32, 16, separate_key=True)
    attention.load_state_dict(
        {f"{name}.weight": weight for name, weight in swapped.items()}
        | {f"{name}.bias": record[f"w.{name}.conv.bias"] for name in ("query", "key")}
    )
    content = nn.Sequential(
        nn.Conv2d(32, 16, 1, bias=False), nn.BatchNorm2d(16), nn.ELU(), nn.Conv2d(16, 1, 1, bias=False)
    )
    names = {"0": "0.conv", "1": "0.bn", "3": "1.conv"}
    content.load_state_dict(
        {
            key: record[f"w.value.conv.{names[key.split('.')[0]]}.{key.split('.')[1]}"]
            for key in content.state_dict()
        }
    )
    mixer = Mixer(AdaptiveLam(1.0), attention, content, upsample=upsampling)
    return mixer.train(bool(record["train"]))


def official_pair(record: dict[str, Tensor], lam: float) -> tuple[Tensor, Pairing]:
    """Maps of the official second images, each with its first image as partner and the weight 1 - lam."""
    return record["feat"][record["index"]], Pairing(torch.tensor([1 - lam]), record["index"].argsort())


@pytest.mark.parametrize("lam", OFFICIAL)
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_value_golden_samix_parts(golden, mode, lam):
    """Attention, content and, with upsampling before the sigmoid as in the official code, the mask."""
    record = golden(f"a_samix_mixblock_k-1_{mode}")
    mixer = official_mixer(record, "bilinear")
    z, pair = official_pair(record, lam)
    content, attention = mixer.parts(z, pair)
    run = f"lam{lam}/bilinear"
    torch.testing.assert_close(attention, record[f"{run}/P"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(content[:, 0], record[f"{run}/value"], rtol=1e-4, atol=1e-5)
    mixer.sigmoid_last = True
    mask = mixer(z, pair, (32, 32))
    torch.testing.assert_close(mask, record[f"{run}/mask"][:, 1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lam", OFFICIAL)
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_gradient_golden_samix_nearest(golden, mode, lam):
    """Nearest upsampling commutes with the sigmoid, so the whole Mixer, its gradients and buffers agree."""
    record = golden(f"a_samix_mixblock_k-1_{mode}")
    run, mixer = f"lam{lam}/nearest", official_mixer(record, "nearest")
    z, pair = official_pair(record, lam)
    mask = mixer(z, pair, (32, 32))
    torch.testing.assert_close(mask, record[f"{run}/mask"][:, 1:], rtol=1e-4, atol=1e-5)
    (torch.cat([1 - mask, mask], dim=1) * record["R"]).sum().backward()
    for ours, theirs in {
        mixer.attention.query.weight: record[f"{run}/grad.query.conv.weight"].roll(32, dims=1),
        mixer.attention.key.weight: record[f"{run}/grad.key.conv.weight"].roll(32, dims=1),
        mixer.content[0].weight: record[f"{run}/grad.value.conv.0.conv.weight"],
        mixer.content[1].weight: record[f"{run}/grad.value.conv.0.bn.weight"],
        mixer.content[3].weight: record[f"{run}/grad.value.conv.1.conv.weight"],
    }.items():
        torch.testing.assert_close(ours.grad, theirs, rtol=1e-3, atol=1e-3)
    if mode == "train" and lam == OFFICIAL[-1]:  # the record keeps the buffers of its last run only
        for name in ("running_mean", "running_var"):
            expected = record[f"{run}/after.value.conv.0.bn.{name}"]
            torch.testing.assert_close(getattr(mixer.content[1], name), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lam", OFFICIAL)
def test_gradient_golden_automix(golden, lam):
    record = golden("b_automix_mixblock_lamconcat_eval")
    attention, content = CrossAttention(33, 16), linear_content(33)
    names = {"project.weight": "w.query.conv.weight", "project.bias": "w.query.conv.bias"}
    attention.load_state_dict({ours: record[theirs] for ours, theirs in names.items()})
    content.load_state_dict({name: record[f"w.value.{name}"] for name in ("weight", "bias")})
    block = Mixer(ConcatLam(), attention, content, upsample="nearest")
    run, (z, pair) = f"lam{lam}/nearest", official_pair(record, lam)
    mask = block(z, pair, (32, 32))
    torch.testing.assert_close(mask, record[f"{run}/mask"][:, 1:], rtol=1e-4, atol=1e-5)
    (torch.cat([1 - mask, mask], dim=1) * record["R"]).sum().backward()
    for ours, theirs in {
        attention.project.weight: "query.conv.weight",
        attention.project.bias: "query.conv.bias",
        content.weight: "value.weight",
        content.bias: "value.bias",
    }.items():
        torch.testing.assert_close(ours.grad, record[f"{run}/grad.{theirs}"], rtol=1e-3, atol=1e-3)
