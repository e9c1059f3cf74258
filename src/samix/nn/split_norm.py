"""Batch norm over groups of the batch: one process behaves like several, each with statistics of its own.

MoCo shuffles the key batch over processes so that a query cannot recognise its key by the statistics they
share. In one process, groups and a permutation of the key batch do the same (szq0214/Un-Mix on CIFAR).
"""

import torch
from torch import Tensor, nn


class SplitBatchNorm(nn.BatchNorm2d):
    """Batch norm whose training statistics are those of each of `groups` parts of the batch."""

    def __init__(self, norm: nn.BatchNorm2d, groups: int) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        self.load_state_dict(norm.state_dict())
        for name, parameter in norm.named_parameters():
            self.get_parameter(name).requires_grad_(parameter.requires_grad)
        self.train(norm.training)
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        groups = min(self.groups, len(input) // 2)
        if not self.training or groups < 2:
            return super().forward(input)
        return torch.cat([super(SplitBatchNorm, self).forward(part) for part in input.tensor_split(groups)])


def split_norms(network: nn.Module, groups: int) -> None:
    """Splits the network's 2-d batch norms into groups; names and weights stay as they are."""
    if groups < 2:
        return
    for name, child in network.named_children():
        if type(child) is nn.BatchNorm2d:
            setattr(network, name, SplitBatchNorm(child, groups))
        else:
            split_norms(child, groups)
