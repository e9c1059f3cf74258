"""Networks that timm does not have: stems, the small ResNet, WRN."""

import pytest
import timm
import torch
from torch import nn

from samix.nn.resnet import WideResNet, safe_shortcut, small_resnet, with_cifar_stem


@pytest.mark.parametrize("width", [8, 16])
def test_shape_small_resnet(width):
    network = small_resnet(width)
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 8 * width)
    x = network.conv1(torch.randn(2, 3, 32, 32))
    assert x.shape == (2, width, 32, 32)
    for stage, (channels, side) in enumerate([(width, 32), (2 * width, 16), (4 * width, 8), (8 * width, 4)]):
        layer = network.get_submodule(f"layer{stage + 1}")
        x = layer(x)
        assert len(layer) == 1 and x.shape == (2, channels, side, side)


@pytest.mark.parametrize("width", [1, 4, 8, 12])
def test_value_narrow_networks_have_right_gradients_in_channels_last(width):
    """oneDNN's own strided 1x1 convolution writes past its memory here: a crash, or wrong gradients."""
    network = small_resnet(width)
    x, grads = torch.randn(6, 3, 16, 16), []
    for layout in (torch.contiguous_format, torch.channels_last):
        for _ in range(20):
            network.zero_grad()
            network.to(memory_format=layout)(x.contiguous(memory_format=layout)).square().sum().backward()
        grads.append([p.grad.clone() for p in network.parameters()])
    for plain, last in zip(*grads, strict=True):
        torch.testing.assert_close(plain, last, rtol=1e-3, atol=1e-4 * plain.abs().max().item() + 1e-5)


def shortcut(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, 6, 1, 2, bias=False), nn.BatchNorm2d(6))


def test_value_the_safe_shortcut_is_the_strided_one():
    strided, x = shortcut(4), torch.randn(2, 4, 7, 9)
    expected, names = strided(x), list(strided.state_dict())
    safe = safe_shortcut(strided)
    assert safe is not strided and list(safe.state_dict()) == names
    torch.testing.assert_close(safe(x), expected)
    wide = shortcut(16)
    assert safe_shortcut(wide) is wide


def test_value_residual_branches_start_at_zero():
    network = small_resnet(8)
    for stage in range(1, 5):
        assert (network.get_submodule(f"layer{stage}")[0].bn2.weight == 0).all()


def test_gradient_reaches_every_parameter_of_the_small_resnet():
    network = small_resnet(8)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
    network(torch.randn(4, 3, 32, 32)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in network.parameters())


def test_shape_cifar_stem_keeps_the_resolution():
    network = with_cifar_stem(timm.create_model("resnet18", num_classes=0))
    stem = nn.Sequential(network.conv1, network.bn1, network.act1, network.maxpool)
    assert stem(torch.randn(2, 3, 32, 32)).shape == (2, 64, 32, 32)
    assert network.conv1.bias is None and 0.01 < network.conv1.weight.std() < 0.1


def test_shape_wide_resnet():
    network = WideResNet(10, 2)
    x = torch.randn(2, 3, 32, 32)
    assert network(x).shape == (2, 128) and network.num_features == 128
    x = network.conv1(x)
    for stage, (channels, side) in enumerate([(32, 32), (64, 16), (128, 8)], start=1):
        x = network.get_submodule(f"layer{stage}")(x)
        assert x.shape == (2, channels, side, side)


def test_value_wide_resnet_28_8_has_the_published_size():
    with torch.device("meta"):
        network = WideResNet(28, 8)
    assert [len(network.get_submodule(f"layer{stage}")) for stage in (1, 2, 3)] == [4, 4, 4]
    count = sum(p.numel() for p in network.parameters())
    assert 23.2e6 < count < 23.5e6  # 23.4 M with the classifier


def test_value_wide_resnet_uses_the_official_constants():
    norms = [m for m in WideResNet(10, 1).modules() if isinstance(m, nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-3, 1e-3)}


def test_gradient_reaches_every_parameter_of_the_wide_resnet():
    network = WideResNet(10, 1)
    network(torch.randn(4, 3, 16, 16)).square().sum().backward()
    assert all(p.grad is not None for p in network.parameters())
