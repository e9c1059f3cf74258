"""The average of weights, against the recursion by hand."""

import torch
from torch import nn

from samix.nn.averaging import WeightAverage


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 2))


def test_value_parameters_and_statistics_follow_the_recursion():
    source = network()
    average = WeightAverage(source, 0.8)
    wanted = {name: value.clone() for name, value in source.state_dict().items()}
    for _ in range(3):
        source(torch.randn(5, 3, 8, 8))  # moves the statistics
        with torch.no_grad():
            for parameter in source.parameters():
                parameter += torch.randn_like(parameter)
        average.follow(source)
        for name, value in source.state_dict().items():
            counter = not value.is_floating_point()
            wanted[name] = value.clone() if counter else 0.8 * wanted[name] + 0.2 * value
    for name, value in average.network.state_dict().items():
        torch.testing.assert_close(value, wanted[name], msg=name)
    assert average.network[1].num_batches_tracked == 3


def test_invariant_it_starts_as_the_network_and_neither_learns_nor_trains():
    source = network()
    average, x = WeightAverage(source, 0.9), torch.randn(2, 3, 8, 8)
    average.train()
    assert not average.network.training and not any(p.requires_grad for p in average.parameters())
    assert torch.equal(average(x), source.eval()(x))
    assert average.network[1].num_batches_tracked == 0
