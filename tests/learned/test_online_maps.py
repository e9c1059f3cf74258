"""The speed setting `online_maps`: the Mixer reads the maps of the clean branch's own pass."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from samix import Mix
from samix.core.pairing import Pairing
from samix.engine.loop import train
from samix.learned import AutoMixed, LearnedMixup, SAMix, Speed
from samix.learned.mixer import MixerConfig
from samix.learned.samix_i import InstanceMixup
from samix.methods.supervised import Objective
from samix.nn.zoo import build_encoder
from samix.runs.files import MIXER
from samix.runs.mixers import load_mixer
from samix.runs.weights import read_weights

CLASSES = 5
ONLINE = LearnedMixup(mixer=MixerConfig(init_std=0.5), speed=Speed(online_maps=True))
CLEAN = Objective(clean_weight=1.0)


def own_network() -> nn.Module:
    """Behind the layer that the Mixer reads, "1", stands one that writes into its input."""
    layers = [nn.Conv2d(3, 8, 4, 4), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(128, CLASSES))


def build(settings: LearnedMixup = ONLINE, objective: Objective = CLEAN) -> SAMix:
    """SAMix whose momentum copy is another network than the classifier, so that their maps differ."""
    model = SAMix.wrap(own_network(), "1", CLASSES, settings, objective=objective, size=16, head="4")
    for parameter in model.momentum.parameters():
        parameter.data.mul_(1.5)
    return model


def batch() -> tuple[Tensor, Tensor]:
    return torch.randn(6, 3, 16, 16), torch.arange(6) % CLASSES


def read_by_mixer(model: SAMix, x: Tensor, y: Tensor) -> list[Tensor]:
    """The maps of every call of the Mixer in one step."""
    maps: list[Tensor] = []
    model.mixer.register_forward_pre_hook(lambda mixer, inputs: maps.append(inputs[0]))
    model(x, y, 0.5)
    return maps


@pytest.mark.parametrize("settings", [ONLINE, AutoMixed(speed=Speed(online_maps=True))])
def test_value_the_mixer_reads_the_classifiers_maps_of_clean_pictures(settings):
    model, (x, y) = build(settings), batch()
    expected = model.method.encoder.network[:2](x)
    maps = read_by_mixer(model, x, y)
    assert len(maps) == 2 and not any(z.requires_grad for z in maps)
    for z in maps:
        torch.testing.assert_close(z, expected)
    assert float(maps[0].min()) < 0, "the maps of the layer, before what the next one writes into them"


def test_value_only_where_the_maps_come_from_differs():
    """With a copy that still equals the classifier, both settings give the same losses and gradients."""
    x, y = batch()
    torch.manual_seed(0)
    networks = nn.ModuleList(own_network() for _ in range(2))
    networks[1].load_state_dict(networks[0].state_dict())
    found = []
    for network, online in zip(networks, (False, True), strict=True):
        torch.manual_seed(1)
        settings = replace(ONLINE, speed=Speed(online_maps=online))
        model = SAMix.wrap(network, "1", CLASSES, settings, objective=CLEAN, size=16, head="4")
        torch.manual_seed(2)
        losses = model(x, y, 0.5)
        losses.total.backward()
        trained = {name: p.grad for name, p in model.named_parameters() if p.requires_grad}
        found.append((losses.encoder, losses.mixer, trained))
    torch.testing.assert_close(found[1], found[0])


def test_value_no_pass_more_than_the_losses_need():
    model, (x, y) = build(), batch()
    runs: dict[str, int] = {}
    for name, method in (("online", model.method), ("copy", model.momentum)):

        def count(module: nn.Module, inputs: object, name: str = name) -> None:
            runs[name] = runs.get(name, 0) + 1

        method.encoder.network[0].register_forward_pre_hook(count)
    model(x, y, 0.5)
    assert runs == {"online": 2, "copy": 1}


def test_gradient_both_losses_reach_what_is_theirs_and_nothing_else():
    model, (x, y) = build(), batch()
    losses = model(x, y, 0.5)
    parts = {"method": list(model.method.parameters()), "mixer": list(model.mixer.parameters())}
    assert not any(p.requires_grad for p in model.momentum.parameters())
    for loss, mine, other in (
        (losses.encoder, "method", "mixer"),
        (losses.mixer, "mixer", "method"),
    ):
        reached = torch.autograd.grad(loss, parts[mine], retain_graph=True, allow_unused=True)
        assert all(grad is not None for grad in reached)
        beyond = torch.autograd.grad(loss, parts[other], retain_graph=True, allow_unused=True)
        assert all(grad is None for grad in beyond)


def test_value_tokens_are_read_behind_the_norm():
    vit = build_encoder("small-vit", width=2, size=16).network
    network = nn.Sequential(vit, nn.Linear(12, CLASSES))
    model = SAMix.wrap(
        network, "blocks.2", CLASSES, ONLINE, objective=CLEAN, size=16, prefix_tokens=1, norm="norm", head="1"
    ).eval()
    x, y = batch()
    _, z = model.method.clean_loss_and_maps(x, y)
    torch.testing.assert_close(z, model.maps(x))
    assert not z.requires_grad


def test_value_pictures_and_exports_show_what_the_mixer_reads():
    model, (x, y) = build().eval(), batch()
    pairing = Pairing(torch.tensor([0.5]), torch.arange(6).roll(1))
    expected = model.method.encoder.network[:2](x)
    torch.testing.assert_close(model.maps(x), expected)
    masks = model.settings.adjusting.adjust(model.paint(expected, pairing, (16, 16)), pairing.lam)
    torch.testing.assert_close(model.picture(x, y, pairing).mask, masks)
    weights, _ = model.mixer_weights()
    assert torch.equal(weights["encoder.0.weight"], model.method.encoder.network[0].weight)


def test_value_the_frozen_mixer_of_a_run_reads_what_the_mixer_learned_to_read(
    tiny, tmp_path, short_retention
):
    recipe = tiny(mixup=ONLINE, objective=CLEAN, epochs=1)
    train(recipe, tmp_path / "run", name="tiny", quiet=True)
    tensors, _ = read_weights(tmp_path / "run" / MIXER)
    for name, weight in SAMix.load(tmp_path / "run").method.encoder.network.state_dict().items():
        torch.testing.assert_close(tensors[f"encoder.{name}"], weight)
    mix = Mix(load_mixer(tmp_path / "run"), classes=12)
    assert mix(torch.rand(4, 3, 16, 16), torch.arange(4))[0].shape == (4, 3, 16, 16)


@pytest.mark.parametrize(
    "objective",
    [
        Objective(),
        Objective(clean_weight=1.0, clean_fraction=0.5),
        Objective(clean_weight=1.0, clean_crop=0.75),
    ],
)
def test_error_a_clean_branch_that_does_not_see_the_whole_batch(objective):
    got = f"{objective.clean_weight}, {objective.clean_fraction} and {objective.clean_crop}"
    with pytest.raises(ValueError, match=rf"online_maps takes the Mixer's maps from the clean .*got {got}"):
        build(objective=objective)


def test_error_without_labels():
    with pytest.raises(ValueError, match="mixup.speed.online_maps must be false without labels"):
        InstanceMixup(speed=Speed(online_maps=True))
