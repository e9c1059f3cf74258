"""Kill -9 in mid-epoch, start again: the weights of a run that was never interrupted."""

import signal

import pytest
import torch
import yaml

from samix.engine.recipe import to_dict
from samix.runs.records import read_metrics

SCRIPT = """
import os, signal, sys
from pathlib import Path

import samix
from samix.commands.fields import from_yaml
from samix.engine import loop

config, folder, last = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
check_finite = loop.check_finite


def check(losses, step, epoch):
    if step == last:
        os.kill(os.getpid(), signal.SIGKILL)
    check_finite(losses, step, epoch)


loop.check_finite = check
loop.train(from_yaml(config), folder, name="tiny/samix", quiet=True)
"""


@pytest.mark.slow
def test_value_a_killed_run_ends_like_one_that_was_not(tiny, finished, tmp_path, start, weights):
    config, script, killed = (tmp_path / name for name in ("a.yaml", "run.py", "killed"))
    config.write_text(yaml.safe_dump(to_dict(tiny())))
    script.write_text(SCRIPT)
    first = start(script, config, killed, 6)
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert torch.load(killed / "last.ckpt", weights_only=True)["step"] == 4
    assert not (killed / "summary.json").exists()

    second = start(script, config, killed, -1)
    assert second.returncode == 0, second.stderr
    found, expected = weights(killed), weights(finished)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
    for row, other in zip(read_metrics(killed, 9), read_metrics(finished, 9), strict=True):
        assert all(row[name] == other[name] for name in ("epoch", "loss", "mixer", "gamma", "top1", "ece"))
