"""Optimizer groups: who follows which schedule, and who decays."""

import math

import pytest
import torch
from torch import nn

from samix.engine.optim import (
    Optimizer,
    build_optimizer,
    find_undecayed,
    learning_scales,
    set_learning_rates,
)
from samix.nn.zoo import build_encoder

NAMES = ["sgd", "adamw", "lamb"]


def parameters() -> dict[str, list[nn.Parameter]]:
    encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2))
    mixer = nn.Conv2d(4, 1, 1)
    gamma = nn.Parameter(torch.tensor(1.0))
    return {"encoder": list(encoder.parameters()), "mixer": [*mixer.parameters(), gamma]}


@pytest.mark.parametrize("name", NAMES)
def test_value_every_parameter_in_one_group_of_its_role(name):
    members = parameters()
    optimizer = build_optimizer(members, Optimizer(name=name, lr=0.3, mixer_lr=0.02))
    for role, lr in (("encoder", 0.3), ("mixer", 0.02)):
        groups = [group for group in optimizer.param_groups if group["role"] == role]
        assert all(group["lr"] == lr for group in groups)
        found = [id(p) for group in groups for p in group["params"]]
        assert sorted(found) == sorted(id(p) for p in members[role])


@pytest.mark.parametrize("name", NAMES)
def test_value_weight_decay(name):
    optimizer = build_optimizer(parameters(), Optimizer(name=name, weight_decay=0.05))
    for group in optimizer.param_groups:
        for member in group["params"]:
            spared = name != "sgd" and member.ndim <= 1
            assert group["weight_decay"] == (0.0 if spared else 0.05)


@pytest.mark.parametrize(
    ("encoder", "size", "spared"),
    [("deit-s", 32, {"cls_token", "pos_embed"}), ("swin-t", 64, {"relative_position_bias_table"})],
)
def test_value_tokens_and_positions_do_not_decay(encoder, size, spared):
    with torch.device("meta"):
        network = build_encoder(encoder, size=size)
    free = find_undecayed(network)
    names = {name.rsplit(".", 1)[-1] for name, p in network.named_parameters() if p in free}
    assert names == spared
    members = {"encoder": list(network.parameters())}
    optimizer = build_optimizer(members, Optimizer(name="adamw", weight_decay=0.05), free)
    decays = {p: group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert len(decays) == len(members["encoder"])
    for p in members["encoder"]:
        assert decays[p] == (0.0 if p in free or p.ndim <= 1 else 0.05)


def test_value_momentum_of_sgd():
    optimizer = build_optimizer(parameters(), Optimizer(momentum=0.8, mixer_momentum=0.0))
    assert {group["role"]: group["momentum"] for group in optimizer.param_groups} == {
        "encoder": 0.8,
        "mixer": 0.0,
    }


def test_value_classes():
    kinds = [type(build_optimizer(parameters(), Optimizer(name=name))).__name__ for name in NAMES]
    assert kinds == ["SGD", "AdamW", "Lamb"]


@pytest.mark.parametrize("name", NAMES)
def test_gradient_a_step_goes_down(name):
    torch.manual_seed(0)
    members = parameters()
    config = Optimizer(name=name, lr=0.01, mixer_lr=0.01, weight_decay=0.0)
    optimizer = build_optimizer(members, config)
    everything = [p for group in members.values() for p in group]

    def loss() -> torch.Tensor:
        return sum((p - 2).square().sum() for p in everything)

    before = loss()
    for _ in range(5):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    assert loss() < before


def rates(config: Optimizer, progress: float, epochs: int = 10) -> dict[str, float]:
    optimizer = build_optimizer(parameters(), config)
    set_learning_rates(optimizer, config, progress, epochs)
    return {group["role"]: group["lr"] for group in optimizer.param_groups}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("progress", [0.0, 0.3, 0.5, 1.0])
def test_value_each_role_has_its_own_half_cosine(name, progress):
    config = Optimizer(name=name, lr=0.4, min_lr=0.1, mixer_lr=0.02, mixer_min_lr=0.01)
    fallen = (1 - math.cos(math.pi * progress)) / 2
    found = rates(config, progress)
    assert found["encoder"] == pytest.approx(0.4 - 0.3 * fallen)
    assert found["mixer"] == pytest.approx(0.02 - 0.01 * fallen)


def test_value_warm_up():
    config = Optimizer(lr=0.4, mixer_lr=0.02, warmup_epochs=2.0)
    assert rates(config, 0.0) == {"encoder": 0.0, "mixer": 0.0}
    assert rates(config, 0.1)["encoder"] == pytest.approx(0.2)
    assert rates(config, 0.2)["encoder"] == pytest.approx(0.4)
    assert rates(config, 0.6)["mixer"] == pytest.approx(0.01)
    assert rates(config, 1.0)["encoder"] == pytest.approx(0.0)


def test_value_a_warm_up_may_start_above_zero():
    config = Optimizer(lr=0.4, mixer_lr=0.02, warmup_epochs=2.0, warmup_start=0.5)
    assert rates(config, 0.0) == {"encoder": pytest.approx(0.2), "mixer": pytest.approx(0.01)}
    assert rates(config, 0.1)["encoder"] == pytest.approx(0.3)
    assert rates(config, 0.2)["encoder"] == pytest.approx(0.4)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_value_the_second_beta(name):
    found = [build_optimizer(parameters(), Optimizer(name=name, beta2=beta)) for beta in (0.999, 0.95)]
    assert [{group["betas"] for group in each.param_groups} for each in found] == [
        {(0.9, 0.999)},
        {(0.9, 0.95)},
    ]


def test_value_a_warm_up_longer_than_training_only_rises():
    config = Optimizer(lr=0.4, warmup_epochs=50.0)
    assert rates(config, 0.5)["encoder"] == pytest.approx(0.2)


def test_value_a_cluster_head_has_no_momentum():
    members = {"encoder": [nn.Parameter(torch.ones(2, 2))], "head": [nn.Parameter(torch.ones(2, 2))]}
    optimizer = build_optimizer(members, Optimizer(momentum=0.9))
    assert {group["role"]: group["momentum"] for group in optimizer.param_groups} == {
        "encoder": 0.9,
        "head": 0.0,
    }


def test_value_a_constant_group_keeps_its_learning_rate():
    members = {"encoder": [nn.Parameter(torch.ones(2, 2))], "constant": [nn.Parameter(torch.ones(2, 2))]}
    config = Optimizer(lr=0.2)
    optimizer = build_optimizer(members, config)
    set_learning_rates(optimizer, config, 1.0, 10)
    assert {group["role"]: group["lr"] for group in optimizer.param_groups} == {
        "encoder": 0.0,
        "constant": 0.2,
    }


# ------------------------------------------------------------ learning rates by stage


def scaled(config: Optimizer) -> tuple[nn.Module, nn.Linear, torch.optim.Optimizer]:
    """A network of five stages and a head behind it in an optimizer."""
    network, head = build_encoder("small-resnet", width=4).network, nn.Linear(32, 3)
    members = [*network.parameters(), *head.parameters()]
    scales = learning_scales(members, network, config)
    return network, head, build_optimizer({"encoder": members}, config, scales=scales)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("progress", [0.0, 0.4])
def test_value_stages_far_from_the_head_learn_slower(name, progress):
    config = Optimizer(name=name, lr=0.4, min_lr=0.1, head_lr=10.0, layer_decay=0.5)
    network, head, optimizer = scaled(config)
    set_learning_rates(optimizer, config, progress, 10)
    found = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    lr = 0.1 + 0.3 * (1 + math.cos(math.pi * progress)) / 2
    assert found[head.weight] == found[head.bias] == pytest.approx(10 * lr)
    stages = [network.conv1, network.layer1, network.layer2, network.layer3, network.layer4]
    for away, stage in enumerate(reversed(stages), start=1):
        for parameter in stage.parameters():
            assert found[parameter] == pytest.approx(lr * 0.5**away)
    assert len(found) == len(list(network.parameters())) + 2


def test_value_by_default_groups_are_as_they_were():
    _, _, optimizer = scaled(Optimizer())
    assert len(optimizer.param_groups) == 1 and "scale" not in optimizer.param_groups[0]


def test_value_the_mixer_is_not_scaled():
    members = parameters()
    config = Optimizer(head_lr=3.0, mixer_lr=0.02)
    scales = learning_scales(members["encoder"], nn.Identity(), config)
    optimizer = build_optimizer(members, config, scales=scales)
    set_learning_rates(optimizer, config, 0.0, 10)
    assert {group["role"]: group["lr"] for group in optimizer.param_groups} == {
        "encoder": pytest.approx(0.3),
        "mixer": 0.02,
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head_lr": 0.0}, r"optimizer.head_lr must be positive, got 0.0"),
        ({"layer_decay": 1.5}, r"optimizer.layer_decay must lie in \(0, 1\], got 1.5"),
        ({"layer_decay": 0.0}, r"optimizer.layer_decay must lie in \(0, 1\], got 0.0"),
    ],
)
def test_error_rates_by_stage(changes, words):
    with pytest.raises(ValueError, match=words):
        Optimizer(**changes)


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_value_all_parameters_may_decay(name):
    """As in MoCo v3's own code, whose AdamW knows one group."""
    spared = {parameters()["mixer"][0]}
    optimizer = build_optimizer(parameters(), Optimizer(name=name, weight_decay=0.1, decay_all=True), spared)
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.1}
    assert len(optimizer.param_groups) == 2
