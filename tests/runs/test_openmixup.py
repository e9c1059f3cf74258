"""Official checkpoints: the block's golden weights with a network around them, and files that are none."""

from pathlib import Path

import pytest
import timm
import torch
from torch import Tensor, nn

import samix
from samix.core.pairing import Pairing
from samix.core.shapes import Stats
from samix.nn.resnet import with_cifar_stem
from samix.runs.mixers import load_mixer
from samix.runs.openmixup import CIFAR, IMAGENET, load_official, read_block

LAM, INDEX = 0.35, torch.tensor([1, 2, 3, 0])


def block_of(channels: int) -> dict[str, Tensor]:
    """An official SAMix block with random weights."""
    inner = channels // 2
    shapes = {"query.conv.weight": (inner, 2 * channels, 1, 1), "query.conv.bias": (inner,)}
    shapes |= {"key.conv.weight": (inner, 2 * channels, 1, 1), "key.conv.bias": (inner,)}
    shapes |= {
        "value.conv.0.conv.weight": (inner, channels, 1, 1),
        "value.conv.1.conv.weight": (1, inner, 1, 1),
    }
    norm = {f"value.conv.0.bn.{name}": value for name, value in nn.BatchNorm2d(inner).state_dict().items()}
    return {name: 0.1 * torch.randn(shape) for name, shape in shapes.items()} | norm


def official_mask(z: Tensor, w: dict[str, Tensor], lam: float, index: Tensor, scale: int) -> Tensor:
    """The official formula, written down from its description: the mask of each first image."""
    z_i, z_j = (1 + lam) * z, (1 + 1 - lam) * z[index]
    pair = torch.cat([z_i, z_j], dim=1)
    conv = nn.functional.conv2d
    query, key = (conv(pair, w[f"{n}.conv.weight"], w[f"{n}.conv.bias"]).flatten(2) for n in ("query", "key"))
    attention = (query.transpose(1, 2) @ key / query.shape[1] ** 0.5).softmax(dim=-1)
    mean, var, gain, bias = (
        w[f"value.conv.0.bn.{n}"] for n in ("running_mean", "running_var", "weight", "bias")
    )
    hidden = nn.functional.batch_norm(conv(z_j, w["value.conv.0.conv.weight"]), mean, var, gain, bias)
    content = conv(nn.functional.elu(hidden), w["value.conv.1.conv.weight"])
    low = (attention @ content.flatten(2).transpose(1, 2)).transpose(1, 2).view_as(content)
    return 1 - nn.functional.interpolate(low, scale_factor=scale, mode="bilinear").sigmoid()


def checkpoint(
    path: Path, network: nn.Module, channels: int, *, prefix: str = "backbone_k."
) -> dict[str, Tensor]:
    """Writes an official checkpoint; returns its block."""
    block = block_of(channels)
    state = {f"mix_block.{name}": value for name, value in block.items()}
    state |= {f"{prefix}{name}": value for name, value in network.state_dict().items()}
    state |= {"backbone_q.conv1.weight": torch.zeros(1), "head_mix_k.fc.weight": torch.zeros(10, 512)}
    torch.save({"meta": {"epoch": 3}, "state_dict": state}, path)
    return block


@pytest.mark.parametrize("prefix", ["backbone_k.", "backbone.", "encoder_k.0."])
def test_value_a_checkpoint_paints_the_official_masks(tmp_path, prefix):
    network = with_cifar_stem(timm.create_model("resnet18", num_classes=0)).eval()
    block = checkpoint(tmp_path / "official.pth", network, 256, prefix=prefix)
    policy, x = load_mixer(tmp_path / "official.pth"), torch.rand(4, 3, 32, 32)
    assert policy.painter.size == 32 and policy.painter.stats == CIFAR
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in CIFAR)
    with torch.no_grad():
        z = network.layer3(
            network.layer2(network.layer1(network.act1(network.bn1(network.conv1((x - mean) / std)))))
        )
        expected = official_mask(z, block, LAM, INDEX, 4)
    mask = policy.painter(x, Pairing(torch.tensor([1 - LAM]), INDEX), (32, 32))
    # The official block mixes x with x[index]: there the partner is painted.
    swapped = policy.painter(x[INDEX], Pairing(torch.tensor([1 - LAM]), INDEX.argsort()), (32, 32))
    torch.testing.assert_close(1 - swapped, expected, rtol=1e-4, atol=1e-5)
    assert mask.std() > 0
    mixed = samix.Mix(policy, classes=4)(x, torch.arange(4))
    assert mixed[0].shape == x.shape


def test_value_what_a_file_does_not_tell_can_be_said(tmp_path):
    checkpoint(tmp_path / "o.pth", timm.create_model("resnet18", num_classes=0), 256)
    assert load_official(tmp_path / "o.pth").painter.stats == IMAGENET
    stats = Stats((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    painter = load_official(
        tmp_path / "o.pth", stats=stats, size=64, rescale=0.25, upsample="nearest", activation="relu"
    ).painter
    assert painter.size == 64 and painter.stats == stats
    assert painter.mixer.encoding.rescale == 0.25 and painter.mixer.upsample == "nearest"
    assert isinstance(painter.mixer.content[2], nn.ReLU)


@pytest.mark.parametrize("name", ["a_samix_mixblock_k-1_eval", "b_automix_mixblock_lamconcat_eval"])
def test_value_golden_masks_of_the_first_images(golden, name):
    record = golden(name)
    mixer = (
        read_block({key[2:]: value for key, value in record.items() if key.startswith("w.")}).build().eval()
    )
    z, index, mode = record["feat"], record["index"], "bilinear" if name.startswith("a") else "nearest"
    with torch.no_grad():
        painted = mixer(z[index], Pairing(torch.tensor([0.65]), index.argsort()), (32, 32))
    torch.testing.assert_close(1 - painted, record[f"lam0.35/{mode}/mask"][:, :1], rtol=1e-4, atol=1e-5)


def test_error_blocks_that_are_none():
    with pytest.raises(
        ValueError, match="is not an official MixBlock: it has no convolution 'query.conv.weight'"
    ):
        read_block({})
    with pytest.raises(ValueError, match="it has no convolution 'value.weight'"):
        read_block({"query.conv.weight": torch.zeros(4, 16, 1, 1)})
    with pytest.raises(ValueError, match="projects 24 channels but its content reads 8"):
        read_block(block_of(8) | {"query.conv.weight": torch.zeros(4, 24, 1, 1)})
    with pytest.raises(ValueError, match="a weight that samix does not know: 'query.bn.weight'"):
        read_block(block_of(8) | {"query.bn.weight": torch.zeros(4)})
    with pytest.raises(ValueError, match="the official MixBlock does not fit"):
        read_block(block_of(8) | {"key.conv.bias": torch.zeros(5)}).build()


def test_error_networks_that_cannot_be_read(tmp_path):
    path = tmp_path / "o.pth"
    checkpoint(path, nn.Sequential(nn.Conv2d(3, 4, 1)), 256)
    with pytest.raises(
        ValueError, match=r"the backbone in .*o.pth is none that samix can read .*\(0, 0, 0, 0\)"
    ):
        load_official(path)
    checkpoint(path, timm.create_model("resnet18", num_classes=0), 128)
    with pytest.raises(ValueError, match="reads 128 channels, but layer 'layer3' of resnet18 has 256"):
        load_official(path, size=64)
    network = timm.create_model("resnet18", num_classes=0)
    network.bn1 = nn.BatchNorm2d(7)
    checkpoint(path, network, 256)
    with pytest.raises(ValueError, match="the backbone in .*o.pth does not fit resnet18"):
        load_official(path, size=64)
