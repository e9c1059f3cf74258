"""A switch of policies in several processes: all of them take the same one, else they wait for each other."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from samix.methods.around import self_mixing
from samix.methods.around.self_mixing import draw_alike
from samix.mixups import CutMix, MixUp, MixupCutMix, Switch

# Co-Mixup's mixtures have many parents and Mixup's two, and the contrast of every parent gathers.
SCRIPT = """
import sys
from datetime import timedelta
from pathlib import Path

import torch
from selfsup import CONFIGS, build_selfsup
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from samix.core.distributed import rank
from samix.core.shapes import Stats
from samix.methods.around.self_mixing import SelfMixing
from samix.mixups import CoMixup, MixUp, Switch

STEPS = 6
distributed.init_process_group("gloo", timeout=timedelta(seconds=30))
found = {}
for name in CONFIGS:
    torch.manual_seed(0)
    policy = Switch(policies=(MixUp(), CoMixup(part=3, rounds=1)))
    model = SelfMixing(build_selfsup(name), policy, stats=Stats((0.5,) * 3, (0.25,) * 3))
    members, draw = [], model.draw
    model.draw = lambda batch, device: members.append(drawn := draw(batch, device)) or drawn
    wrapped = DistributedDataParallel(model, broadcast_buffers=False, find_unused_parameters=True)
    for step in range(STEPS):
        torch.manual_seed(10 * step + rank())  # the processes draw differently
        wrapped(torch.rand(8, 3, 16, 16), torch.arange(4)).total.backward()
    found[name] = torch.stack([torch.stack([choice.member[0], choice.lam[0]]) for choice in members])
torch.save(found, Path(sys.argv[1]) / f"{rank()}.pt")
distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_value_processes_share_the_choice(tmp_path, start_two):
    helpers = Path(__file__).resolve().parents[2] / "helpers"
    script = tmp_path / "run.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(helpers)!r})\n" + SCRIPT)
    done = start_two(script, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (torch.load(tmp_path / f"{number}.pt", weights_only=True) for number in range(2))
    assert {"simclr", "moco-v3"} < set(first)
    for name, drawn in first.items():
        assert torch.equal(drawn[:, 0], second[name][:, 0]), f"{name}: all take the first one's policy"
        assert drawn[:, 0].unique().tolist() == [0, 1], "both policies are drawn"
        assert (drawn[:, 1] != second[name][:, 1]).all(), f"{name}: each draws a lam of its own"


@dataclass(frozen=True, kw_only=True)
class Quarter(MixUp):
    """lam is always a quarter, so that it shows who drew it."""

    def draw_lam(self, count, generator=None):
        return torch.full((count,), 0.25)


@pytest.fixture
def second_of_two(monkeypatch) -> None:
    """This process is one of two, the first of which always chooses the policy 1."""
    monkeypatch.setattr(self_mixing, "world", lambda: 2)
    monkeypatch.setattr(self_mixing, "broadcast", lambda values: values.fill_(1))


def test_value_lam_is_of_the_policy_that_the_first_process_chose(second_of_two):
    policy = Switch(policies=(MixUp(), Quarter()))
    drawn = [draw_alike(policy, 4, torch.device("cpu")) for _ in range(20)]
    assert {int(choice.member) for choice in drawn} == {1}
    assert all(choice.lam.tolist() == [0.25] for choice in drawn)
    assert len({tuple(choice.index.tolist()) for choice in drawn}) > 1, "partners stay each process's own"


def test_value_a_switch_that_is_skipped_stays_skipped(second_of_two):
    policy = MixupCutMix(prob=0.0)
    assert all(draw_alike(policy, 4, torch.device("cpu")).lam.item() == 1 for _ in range(20))


@pytest.mark.parametrize("policy", [CutMix(), MixupCutMix(per_sample=True)], ids=["alone", "per pair"])
def test_invariant_other_draws_stay_as_they_are(second_of_two, policy):
    torch.manual_seed(5)
    expected = policy.draw(6)
    torch.manual_seed(5)
    drawn = draw_alike(policy, 6, torch.device("cpu"))
    assert all(torch.equal(a, b) for a, b in zip(drawn, expected, strict=True))
