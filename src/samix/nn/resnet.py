"""Networks that timm does not have: CIFAR stems, a small ResNet for CPUs, WRN-28-k."""

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def with_cifar_stem(network: Any) -> nn.Module:
    """Replaces the 7x7 stride-2 stem and the max-pool by one 3x3 stride-1 convolution, for 32-64 px."""
    width = network.conv1.out_channels
    network.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
    nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.maxpool = nn.Identity()
    return network


def small_resnet(width: int) -> nn.Module:
    """A ResNet with CIFAR stem and four stages of one basic block, width to 8 * width channels."""
    from timm.models.resnet import BasicBlock, ResNet  # late, see from_timm

    channels = tuple(width * 2**stage for stage in range(4))
    network: Any = ResNet(BasicBlock, (1, 1, 1, 1), num_classes=0, channels=channels)  # type: ignore[arg-type]
    network.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
    network.bn1 = nn.BatchNorm2d(width)
    network.layer1 = nn.Sequential(BasicBlock(width, width))
    network.maxpool = nn.Identity()
    network.init_weights()
    for stage in (network.layer2, network.layer3, network.layer4):
        stage[0].downsample = safe_shortcut(stage[0].downsample)
    return network


def safe_shortcut(shortcut: nn.Sequential) -> nn.Sequential:
    """A strided 1x1 convolution and its norm in a form that oneDNN computes without harm.

    With fewer input channels than a block of its kernels (8 with AVX2, 16 with AVX-512) oneDNN 3.12, in the
    weight gradient of a strided one, writes past its memory in channels-last: crashes, or wrong gradients
    (uxlfoundation/oneDNN issue 6035). So the pixels that it reads are picked before a convolution without
    stride; the names of the weights stay.
    """
    conv, norm = shortcut
    assert isinstance(conv, nn.Conv2d)
    if conv.in_channels >= 16:
        return shortcut
    plain = nn.Conv2d(conv.in_channels, conv.out_channels, 1, bias=False)
    plain.weight = conv.weight
    return nn.Sequential(OrderedDict({"pick": nn.MaxPool2d(1, conv.stride), "0": plain, "1": norm}))


class WideBlock(nn.Module):
    """Pre-activation basic block of WRN."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = wide_norm(inputs), wide_norm(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)
        self.shortcut_after_norm = not same

    def forward(self, x: Tensor) -> Tensor:
        out = leaky(self.bn1(x))
        shortcut = self.shortcut(out if self.shortcut_after_norm else x)
        return self.conv2(leaky(self.bn2(self.conv1(out)))) + shortcut


def wide_norm(channels: int) -> nn.BatchNorm2d:
    """Batch norm with the constants of the official WRN."""
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=1e-3)


def leaky(x: Tensor) -> Tensor:
    """LeakyReLU(0.1)."""
    return F.leaky_relu(x, 0.1)


class WideResNet(nn.Module):
    """WRN-`depth`-`widen` (arXiv 1605.07146) as in the official configs: three stages for 32 px."""

    def __init__(self, depth: int = 28, widen: int = 8) -> None:
        super().__init__()
        blocks, widths = (depth - 4) // 6, [16, 16 * widen, 32 * widen, 64 * widen]
        self.conv1 = nn.Conv2d(3, widths[0], 3, padding=1)
        for stage in (1, 2, 3):
            inputs, outputs, stride = widths[stage - 1], widths[stage], 1 if stage == 1 else 2
            first = WideBlock(inputs, outputs, stride)
            rest = [WideBlock(outputs, outputs, 1) for _ in range(blocks - 1)]
            self.add_module(f"layer{stage}", nn.Sequential(first, *rest))
        self.bn = wide_norm(widths[3])
        self.num_features = widths[3]
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))  # type: ignore[operator]
        return torch.flatten(F.adaptive_avg_pool2d(leaky(self.bn(x)), 1), 1)
