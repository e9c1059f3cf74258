"""SAMix's training step inside torch.compile: one graph, from the maps to both losses."""

import pytest
import torch
from torch import nn


def build(samix, clean: float, online_maps: bool = False):
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 4, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 5)
    )
    objective = samix.Objective(clean_weight=clean)
    settings = samix.learned.LearnedMixup(speed=samix.learned.Speed(online_maps=online_maps))
    return samix.SAMix.wrap(network, "2", 5, settings, objective=objective, head="4" if clean else None)


def learn(model, step, seed: int = 3) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The sum of the losses of one step, and the gradients it gives."""
    x = torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(seed)
    total = step(x, torch.arange(6) % 5, 0.25).total
    total.backward()
    grads = {name: part.grad for name, part in model.named_parameters() if part.grad is not None}
    return total.detach(), grads


@pytest.mark.parametrize(("clean", "online_maps"), [(0.0, False), (1.0, False), (1.0, True)])
def test_value_a_compiled_step_learns_as_the_eager_step(untyped, clean, online_maps):
    eager, compiled = build(untyped, clean, online_maps), build(untyped, clean, online_maps)
    total, grads = learn(eager, eager)
    again = learn(compiled, torch.compile(compiled, fullgraph=True, backend="eager"))
    assert any(name.startswith("mixer.") for name in grads)
    torch.testing.assert_close(again, (total, grads))


def test_invariant_hooks_can_be_registered_behind_a_compiled_step(untyped):
    model = build(untyped, clean=0.0)
    learn(model, torch.compile(model, fullgraph=True, backend="eager"))
    layer, seen = model.momentum.encoder.network[2], []
    handle = layer.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    model.maps(torch.rand(2, 3, 32, 32))
    handle.remove()
    model.maps(torch.rand(2, 3, 32, 32))
    assert seen == [(2, 8, 8, 8)]


@pytest.mark.slow
def test_gradient_of_a_step_by_inductor_reaches_encoder_and_mixer(untyped):
    model = build(untyped, clean=0.0)
    total, grads = learn(model, torch.compile(model, fullgraph=True))
    assert total.isfinite() and all(grad.isfinite().all() for grad in grads.values())
    assert {name.split(".")[0] for name in grads} == {"method", "mixer"}
