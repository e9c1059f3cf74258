"""Helpers of several processes, and two processes that learn what one learns from the same pictures."""

import runpy

import pytest
import torch

from samix.core.distributed import gather, gather_constant, own_places, rank, shared_permutation, world

TOLERANCE = 1e-5

# Run by each of two processes, and by the test itself as one process with all pictures. MoCo has batch norm,
# which the one process splits into two groups; the others, whose batch norm is synchronised, have none here.
SCRIPT = """
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from samix.core.distributed import gather, own_places, rank, shared_permutation, world
from samix.methods.ssl.moco import MoCoV2
from samix.methods.ssl.mocov3 import MoCoV3Config
from samix.learned.pseudo import Clusters
from samix.learned.samix_c import ClusterMixup, SAMixC
from samix.methods.around.sdmp import POLICIES, SDMP, SDMPConfig, mirrored
from samix.methods.around.self_mixing import SelfMixing
from samix.methods.ssl.simclr import SimCLRConfig
from samix.methods.ssl.swav import SwAVConfig
from samix.mixups import CutMix, MixUp, PuzzleMix, Switch
from samix.nn.encoder import Encoder
from samix.core.shapes import Stats

PICTURES = 8


def encoder(norm):
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    return Encoder(network, "2")


def without_batch_statistics(module):
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm1d):
            setattr(module, name, nn.LayerNorm(child.num_features))
        without_batch_statistics(child)
    return module


def moco():
    config = MoCoV2(queue=20, dim=5, hidden=7, momentum=0.9, norm_groups=2)
    return config.build(encoder(nn.BatchNorm2d(6)), 6)


def samix_c():
    clusters = Clusters(count=3, min_size=2, refresh_every=2)
    settings = ClusterMixup(clusters=clusters, negatives=20, drop_alike=True, instance=0.5)
    model = SAMixC(moco(), settings.mixer.build(6), settings, dim=5, pictures=40)
    model.pseudo.begin(torch.randn(40, 5), torch.arange(40) % 3, seed=0)
    return model


def plain(config):
    return lambda: without_batch_statistics(config.build(encoder(nn.GroupNorm(2, 6)), 6))


def drawn_apart():
    # The processes draw different policies, of which only PuzzleMix asks for saliency: a common work.
    policy = Switch(policies=(MixUp(), PuzzleMix(max_exponent=1, transport=False), CutMix()))
    stats = Stats((0.5,) * 3, (0.25,) * 3)
    return SelfMixing(plain(SimCLRConfig(dim=5, hidden=7))(), policy, stats=stats)


@dataclass(frozen=True, kw_only=True)
class Told(SDMPConfig):
    # lam follows from a picture's place among all, so one process has the same; no mixture equals its mirror.
    def draw_lam(self, count, generator=None):
        return torch.linspace(0.1, 0.6, PICTURES)[own_places(count, torch.device("cpu"))]


def sdmp(method):
    return lambda: SDMP(method(), Told(policies=("mixup",)))


MODELS = {
    "moco-v2": moco,
    "simclr": plain(SimCLRConfig(dim=5, hidden=7)),
    "moco-v3": plain(MoCoV3Config(dim=5, hidden=7, momentum=0.9)),
    "swav": plain(SwAVConfig(dim=5, hidden=7, prototypes=6, freeze=0.0, stored=8, store_from=0.0)),
    "samix-c": samix_c,
    "simclr+switch": drawn_apart,
    "moco-v2+sdmp": sdmp(moco),
    "moco-v3+sdmp": sdmp(plain(MoCoV3Config(dim=5, hidden=7, momentum=0.9))),
}


def train(name, steps=3):
    torch.manual_seed(0)
    model = trained = MODELS[name]()
    if world() > 1:  # the queue must agree without help; SAMix-C shows that DDP can send all buffers
        trained = DistributedDataParallel(
            model, broadcast_buffers=name == "samix-c", find_unused_parameters=True
        )
    learned = [p for group in model.parameter_groups().values() for p in group]
    optimizer, losses = torch.optim.SGD(learned, lr=0.1, momentum=0.9), []
    own = own_places(PICTURES // world(), torch.device("cpu"))
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        pictures = torch.rand(PICTURES, 3, 12, 12, generator=generator)
        first, second = (pictures + 0.3 * torch.rand(2, PICTURES, 3, 12, 12, generator=generator)).unbind()
        torch.manual_seed(step + 100 * rank())  # processes draw differently
        optimizer.zero_grad()
        found = trained(torch.cat([first[own], second[own]]), own + PICTURES * step, step / steps)
        found.total.backward()
        optimizer.step()
        model.after_step(step / steps)
        losses.append(found.encoder.item())
    return {"losses": losses, "model": model.state_dict()}


def helpers():
    torch.manual_seed(100 * rank())
    rows = (torch.arange(6.0).view(3, 2) + 10 * rank()).requires_grad_()
    everyone = gather(rows)
    (everyone * (1 + rank()) * torch.arange(12.0).view(6, 2)).sum().backward()
    return {
        "rows": everyone.detach(),
        "gradient": rows.grad,
        "places": own_places(3, rows.device),
        "order": shared_permutation(50, rows.device),
        "world": torch.tensor([world(), rank()]),
        "mirrored": torch.stack(mirrored(3, rows.device)),
        "drawn": drawn_together(),
    }


def drawn_together():
    # Which policy SDMP drew, mixup or a box, and which view came first.
    model = SDMP(moco(), Told(policies=POLICIES))
    seen, drawn = [], []
    model.method.branch.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    own = own_places(PICTURES // world(), torch.device("cpu"))
    x = torch.rand(2 * len(own), 3, 12, 12)
    for step in range(12):
        lam = model(x, own).lam
        blended = torch.allclose(lam, model.config.draw_lam(len(own)), atol=1e-6)
        drawn.append([blended, torch.equal(seen[-2], x[: len(own)])])
    return torch.tensor(drawn)


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    found = {name: train(name) for name in MODELS} | {"helpers": helpers()}
    torch.save(found, Path(sys.argv[1]) / f"{rank()}.pt")
    distributed.destroy_process_group()
"""


def test_value_one_process_is_alone():
    rows = torch.randn(3, 2, requires_grad=True)
    assert (world(), rank()) == (1, 0)
    assert gather(rows) is rows
    assert torch.equal(gather_constant(rows), rows) and not gather_constant(rows).requires_grad
    assert own_places(4, rows.device).tolist() == [0, 1, 2, 3]


def test_value_a_shared_permutation_follows_the_seed():
    orders = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        orders.append(shared_permutation(50, torch.device("cpu")))
    assert orders[0].sort().values.tolist() == list(range(50))
    assert torch.equal(orders[0], orders[1]) and not torch.equal(orders[0], orders[2])


def is_shared(name: str) -> bool:
    """Statistics of batch norm stay each process's own."""
    return "running" not in name and "num_batches" not in name


@pytest.mark.slow
def test_value_two_processes_learn_what_one_learns(tmp_path, start_two):
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    done = start_two(script, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (torch.load(tmp_path / f"{number}.pt", weights_only=True) for number in range(2))

    helpers = first.pop("helpers"), second.pop("helpers")
    for number, found in enumerate(helpers):
        assert found["world"].tolist() == [2, number]
        assert found["rows"].tolist() == [[0, 1], [2, 3], [4, 5], [10, 11], [12, 13], [14, 15]]
        assert found["places"].tolist() == [3 * number + n for n in range(3)]
        own = torch.arange(12.0).view(6, 2)[found["places"]]
        torch.testing.assert_close(found["gradient"], (1 + 2) * own)  # of the losses of both
        assert found["mirrored"].tolist() == [
            found["places"].tolist(),
            [5 - 3 * number - n for n in range(3)],
        ]
    assert torch.equal(helpers[0]["order"], helpers[1]["order"])
    assert torch.equal(helpers[0]["drawn"], helpers[1]["drawn"])
    assert helpers[0]["drawn"].any(dim=0).all() and not helpers[0]["drawn"].all(dim=0).any()

    for name, found in first.items():
        assert found["losses"] != second[name]["losses"], "each saw its own half of the batch"
        shared = [key for key in found["model"] if is_shared(key)]
        for key in shared:
            assert torch.equal(found["model"][key], second[name]["model"][key]), f"{name}: {key}"
    memory = [key for key in first["samix-c"]["model"] if "memory" in key or "bank" in key or "queue" in key]
    assert len(memory) == 5 + 3 + 3 and int(first["samix-c"]["model"]["pseudo.memory.steps"]) == 3

    train = runpy.run_path(str(script))["train"]
    for name in ("moco-v2", "simclr", "moco-v3", "swav", "moco-v2+sdmp", "moco-v3+sdmp"):
        alone = train(name)
        together = [(a + b) / 2 for a, b in zip(first[name]["losses"], second[name]["losses"], strict=True)]
        assert together == pytest.approx(alone["losses"], rel=TOLERANCE), name
        assert list(alone["model"]) == list(first[name]["model"])
        for key in filter(is_shared, alone["model"]):
            expected = alone["model"][key]
            torch.testing.assert_close(
                first[name]["model"][key], expected, rtol=0, atol=TOLERANCE, msg=f"{name}: {key}"
            )
