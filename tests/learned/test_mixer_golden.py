"""The Mixer against numbers recorded from the official code, for SAMix's and AutoMix's block.

The official blocks paint x[index] and take 1 minus it for x. Here those are the first images: the pair
changes places, lam becomes 1 - lam, and weights that read the concatenated pair swap their halves.
"""

import pytest
import torch
from torch import Tensor

from samix.core.pairing import Pairing
from samix.learned.mixer import Mixer, MixerConfig
from samix.runs.openmixup import read_block

OFFICIAL = [0.1, 0.35, 0.5, 0.9]


def official_mixer(record: dict[str, Tensor], **changes) -> Mixer:
    """The recorded block, as the reader of official checkpoints reads it."""
    weights = {name.removeprefix("w."): value for name, value in record.items() if name.startswith("w.")}
    return read_block(weights).build(**changes).train(bool(record["train"]))


def official_pair(record: dict[str, Tensor], lam: float) -> tuple[Tensor, Pairing]:
    """Maps of the official second images, each with its first image as partner and the weight 1 - lam."""
    return record["feat"][record["index"]], Pairing(torch.tensor([1 - lam]), record["index"].argsort())


@pytest.mark.parametrize("lam", OFFICIAL)
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_value_golden_samix_parts(golden, mode, lam):
    """Attention, content and, with upsampling before the sigmoid as in the official code, the mask."""
    record = golden(f"a_samix_mixblock_k-1_{mode}")
    mixer = official_mixer(record)
    z, pair = official_pair(record, lam)
    content, attention = mixer.parts(z, pair)
    run = f"lam{lam}/bilinear"
    torch.testing.assert_close(attention, record[f"{run}/P"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(content[:, 0], record[f"{run}/value"], rtol=1e-4, atol=1e-5)
    mask = mixer(z, pair, (32, 32))
    torch.testing.assert_close(mask, record[f"{run}/mask"][:, 1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lam", OFFICIAL)
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_gradient_golden_samix_nearest(golden, mode, lam):
    """Nearest upsampling commutes with the sigmoid, so the whole Mixer, its gradients and buffers agree."""
    record = golden(f"a_samix_mixblock_k-1_{mode}")
    run, mixer = f"lam{lam}/nearest", official_mixer(record, upsample="nearest", sigmoid_last=False)
    z, pair = official_pair(record, lam)
    mask = mixer(z, pair, (32, 32))
    torch.testing.assert_close(mask, record[f"{run}/mask"][:, 1:], rtol=1e-4, atol=1e-5)
    (torch.cat([1 - mask, mask], dim=1) * record["R"]).sum().backward()
    for ours, theirs in {
        mixer.attention.query.weight: record[f"{run}/grad.query.conv.weight"].roll(32, dims=1),
        mixer.attention.key.weight: record[f"{run}/grad.key.conv.weight"].roll(32, dims=1),
        mixer.content[0].weight: record[f"{run}/grad.value.conv.0.conv.weight"],
        mixer.content[1].weight: record[f"{run}/grad.value.conv.0.bn.weight"],
        mixer.content[4].weight: record[f"{run}/grad.value.conv.1.conv.weight"],
    }.items():
        torch.testing.assert_close(ours.grad, theirs, rtol=1e-3, atol=1e-3)
    if mode == "train" and lam == OFFICIAL[-1]:  # the record keeps the buffers of its last run only
        for name in ("running_mean", "running_var"):
            expected = record[f"{run}/after.value.conv.0.bn.{name}"]
            torch.testing.assert_close(getattr(mixer.content[1], name), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lam", OFFICIAL)
def test_gradient_golden_automix(golden, lam):
    record = golden("b_automix_mixblock_lamconcat_eval")
    block = official_mixer(record)
    run, (z, pair) = f"lam{lam}/nearest", official_pair(record, lam)
    mask = block(z, pair, (32, 32))
    torch.testing.assert_close(mask, record[f"{run}/mask"][:, 1:], rtol=1e-4, atol=1e-5)
    (torch.cat([1 - mask, mask], dim=1) * record["R"]).sum().backward()
    for ours, theirs in {
        block.attention.project.weight: "query.conv.weight",
        block.attention.project.bias: "query.conv.bias",
        block.content.weight: "value.weight",
        block.content.bias: "value.bias",
    }.items():
        torch.testing.assert_close(ours.grad, record[f"{run}/grad.{theirs}"], rtol=1e-3, atol=1e-3)


def test_value_golden_settings(golden):
    """What the official blocks are, in our words."""
    samix, automix = (
        golden(name) for name in ("a_samix_mixblock_k-1_eval", "b_automix_mixblock_lamconcat_eval")
    )
    read = [
        read_block({n.removeprefix("w."): v for n, v in r.items() if n[:2] == "w."}) for r in (samix, automix)
    ]
    assert [block.channels for block in read] == [32, 32]
    assert read[0].settings == MixerConfig(
        attention="mixing-two", activation="elu", bias=False, sigmoid_last=True
    )
    assert read[1].settings == MixerConfig(
        encoding="concat", attention="cross", content="linear", upsample="nearest", sigmoid_last=True
    )
